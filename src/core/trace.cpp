// SPDX-License-Identifier: Apache-2.0
#include "core/trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "rma/error.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{64} << 10;
constexpr std::int64_t write_every_ns = 100'000'000;

void append_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      to += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      to += c;
    }
  }
}

/// Nanoseconds as the format's microseconds, without rounding.
std::string micros(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

/// Number and time of birth: no other process has both. Empty where that cannot be found out.
std::string this_process() {
  constexpr int fields_before = 19;  // between the name, which may contain anything, and the time
  std::string line;
  std::ifstream stat("/proc/self/stat");
  std::getline(stat, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 0; i <= fields_before; ++i) fields >> field;
  return fmt::format("{} since {}", ::getpid(), field);
}

/// The first line after the bracket; it also names the writer of the file.
std::string name_event(int rank, const std::string& process) {
  return fmt::format(R"({{"name":"process_name","ph":"M","pid":{0},"args":{{"name":"rank {0}","process":"{1}"}}}})",
                     rank, process);
}

bool begins_with(const std::string& path, const std::string& start) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;
  std::string found(start.size(), ' ');
  std::ifstream(path).read(found.data(), static_cast<std::streamsize>(found.size()));
  return found == start;
}

/// A file that no earlier runtime of this process has written; what other processes have left is replaced.
std::string free_name(const std::string& pattern, int rank, const std::string& start) {
  int number = 1;
  while (begins_with(trace_file_name(pattern, rank, number), start)) ++number;
  return trace_file_name(pattern, rank, number);
}

}  // namespace

std::string trace_file_name(std::string_view pattern, int rank, int number) {
  std::string name(pattern);
  const std::string who = number > 1 ? fmt::format("{}.{}", rank, number) : std::to_string(rank);
  const auto at = name.find("%r");
  if (at == std::string::npos) return fmt::format("{}.{}", name, who);
  return name.replace(at, 2, who);
}

trace_file::trace_file(const std::string& pattern, int rank, std::uint64_t bytes_max, std::string only)
    : buffer_("[\n" + name_event(rank, this_process())),
      name_(free_name(pattern, rank, buffer_)),
      rank_(rank),
      fd_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      bytes_left_(bytes_max),
      only_(std::move(only)) {
  if (fd_ < 0) {
    throw Error(status::bad_setting,
                fmt::format("RMA_TRACE={}: cannot write {}: {}", pattern, name_, std::strerror(errno)));
  }
  buffer_.reserve(2 * buffer_bytes);
  write();
}

trace_file::~trace_file() {
  buffer_ += "\n]\n";
  write();
  if (fd_ >= 0) ::close(fd_);
}

// A comma on either side of each name.
bool trace_file::leaves_out(std::string_view call) const noexcept {
  if (only_.empty()) return false;
  for (std::size_t at = only_.find(call); at != std::string::npos; at = only_.find(call, at + 1)) {
    const std::size_t end = at + call.size();
    if ((at == 0 || only_[at - 1] == ',') && (end == only_.size() || only_[end] == ',')) return false;
  }
  return true;
}

void trace_file::add_region(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) noexcept {
  const std::lock_guard guard(lock_);
  if (fd_ < 0) return;
  buffer_ += ",\n{\"name\":\"";
  append_escaped(buffer_, name);
  fmt::format_to(std::back_inserter(buffer_),
                 "\",\"cat\":\"region\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}}}", rank_, ::gettid(),
                 micros(begin_ns), micros(end_ns - begin_ns));
  write_if_due(end_ns);
}

void trace_file::add(const trace_event& e) noexcept {
  const std::lock_guard guard(lock_);
  if (fd_ < 0 || leaves_out(e.call)) return;
  fmt::format_to(std::back_inserter(buffer_),
                 ",\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}", e.call, rank_,
                 ::gettid(), micros(e.begin_ns), micros(e.end_ns - e.begin_ns));
  buffer_ += ",\"args\":{\"window\":\"";
  append_escaped(buffer_, e.window);
  fmt::format_to(std::back_inserter(buffer_), "\",\"target\":{},\"bytes\":{},\"protocol\":\"{}\",\"why\":\"{}\"}}}}",
                 e.target, e.bytes, e.protocol, e.why);
  write_if_due(e.end_ns);
}

void trace_file::add_operation(const trace_event& o, int peer) noexcept {
  const std::lock_guard guard(lock_);
  if (fd_ < 0 || leaves_out(o.call)) return;
  const auto one = [&](char phase, std::int64_t at_ns) {
    fmt::format_to(std::back_inserter(buffer_),
                   ",\n{{\"name\":\"{}\",\"cat\":\"operation\",\"ph\":\"{}\",\"id\":{},\"pid\":{},\"ts\":{}", o.call,
                   phase, operations_, rank_, micros(at_ns));
  };
  ++operations_;
  one('b', o.begin_ns);
  buffer_ += ",\"args\":{\"window\":\"";
  append_escaped(buffer_, o.window);
  fmt::format_to(std::back_inserter(buffer_),
                 "\",\"target\":{},\"peer\":{},\"bytes\":{},\"protocol\":\"{}\",\"why\":\"{}\"}}}}", o.target, peer,
                 o.bytes, o.protocol, o.why);
  one('e', o.end_ns);
  buffer_ += '}';
  write_if_due(o.end_ns);
}

// An arrow binds to a slice: each end gets one of a length that can be seen.
void trace_file::add_arrow(const arrow& a, std::int64_t at_ns) noexcept {
  const std::lock_guard guard(lock_);
  if (fd_ < 0 || leaves_out("message")) return;
  const bool begins = a.from == rank_;
  const auto thread = ::gettid();
  fmt::format_to(std::back_inserter(buffer_),
                 ",\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}}}",
                 begins ? "message leaves" : "message arrives", rank_, thread, micros(at_ns), micros(100));
  const auto end = [&](char phase, std::string_view more) {
    fmt::format_to(std::back_inserter(buffer_),
                   ",\n{{\"name\":\"message\",\"cat\":\"message\",\"ph\":\"{}\"{},\"id\":\"{}-{}-{}\",\"pid\":{},"
                   "\"tid\":{},\"ts\":{}}}",
                   phase, more, a.from, a.to, a.number, rank_, thread, micros(at_ns));
  };
  if (begins) end('s', "");
  if (a.to == rank_) end('f', ",\"bp\":\"e\"");
  write_if_due(at_ns);
}

void trace_file::add_raise(const signals& s, std::int64_t at_ns) noexcept {
  const std::lock_guard guard(lock_);
  add_signal_end(s, ++raised_[s], true, at_ns);
}

void trace_file::add_take(const signals& s, std::uint64_t count, std::int64_t at_ns) noexcept {
  const std::lock_guard guard(lock_);
  if (count != 0) add_signal_end(s, taken_[s] += count, false, at_ns);
}

// Both ends have the slices of their calls. The two sides count on their own, so that a signal carries no number.
void trace_file::add_signal_end(const signals& s, std::uint64_t number, bool begins, std::int64_t at_ns) noexcept {
  if (fd_ < 0 || leaves_out("signal")) return;
  fmt::format_to(std::back_inserter(buffer_),
                 ",\n{{\"name\":\"signal\",\"cat\":\"signal\",\"ph\":\"{}\",\"id\":\"{:x}-{}-{}-{}-{}\",\"pid\":{},"
                 "\"tid\":{},\"ts\":{}}}",
                 begins ? "s" : "f\",\"bp\":\"e", s.window, s.from, s.to, s.signal, number, rank_, ::gettid(),
                 micros(at_ns));
  write_if_due(at_ns);
}

void trace_file::write_if_due(std::int64_t end_ns) noexcept {
  if (buffer_.size() < buffer_bytes && end_ns - written_ns_ < write_every_ns) return;
  written_ns_ = end_ns;
  write();
}

// A trace that cannot be written, or is as long as it may be, ends; the program goes on.
void trace_file::write() noexcept {
  if (fd_ >= 0 && buffer_.size() > bytes_left_) {
    std::fprintf(stderr, "rma: rank %d: the trace %s ends here: it has the size that RMA_TRACE_BYTES allows\n", rank_,
                 name_.c_str());
    buffer_ = "\n]\n";
    bytes_left_ = buffer_.size();
    write();
    ::close(std::exchange(fd_, -1));
  }
  bytes_left_ -= std::min<std::uint64_t>(buffer_.size(), bytes_left_);
  for (std::size_t done = 0; fd_ >= 0 && done < buffer_.size();) {
    const auto n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      std::fprintf(stderr, "rma: rank %d: the trace %s ends here: %s\n", rank_, name_.c_str(), std::strerror(errno));
      ::close(fd_);
      fd_ = -1;
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

}  // namespace rma::detail
