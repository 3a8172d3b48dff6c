// SPDX-License-Identifier: Apache-2.0
#include "boot/pmi2_session.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "boot/protocol.hpp"
#include "rma/error.hpp"

namespace rma::boot {
namespace {

constexpr std::size_t length_chars = 6;
constexpr std::size_t message_bytes_max = 1 << 16;
constexpr std::string_view job_entry = "rma.job";

Error no_boot(const std::string& what) { return {status::bad_boot, "RMA_BOOT=pmi2: " + what}; }

template <class Number>
bool to_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

unique_fd launcher_fd() {
  const char* const text = std::getenv("PMI_FD");
  int fd = -1;
  if (text == nullptr || !to_number(std::string_view(text), fd)) {
    throw no_boot("no PMI_FD; start the program with srun --mpi=pmi2 or MPICH's mpiexec");
  }
  int kind = 0;
  socklen_t bytes = sizeof kind;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
    throw no_boot("PMI_FD is closed; a process can have one runtime, and none beside MPI");
  }
  return unique_fd{fd};
}

}  // namespace

std::map<std::string, std::string, std::less<>> pmi2_fields(std::string_view message) {
  std::map<std::string, std::string, std::less<>> found;
  while (!message.empty()) {
    const auto end = message.find(';');
    const std::string_view pair = message.substr(0, end);
    if (const auto cut = pair.find('='); cut != std::string_view::npos)
      found.insert_or_assign(std::string(pair.substr(0, cut)), std::string(pair.substr(cut + 1)));
    message.remove_prefix(end == std::string_view::npos ? message.size() : end + 1);
  }
  return found;
}

int pmi2_nodes(std::string_view mapping) {
  constexpr std::string_view begin = "(vector";
  if (!mapping.starts_with(begin)) return 0;
  mapping.remove_prefix(begin.size());
  int nodes = 0;
  for (auto at = mapping.find(",("); at != std::string_view::npos; at = mapping.find(",(")) {
    mapping.remove_prefix(at + 2);
    int first = 0;
    int count = 0;
    const auto comma = mapping.find(',');
    const auto second = comma == std::string_view::npos ? comma : mapping.find(',', comma + 1);
    if (second == std::string_view::npos || !to_number(mapping.substr(0, comma), first) ||
        !to_number(mapping.substr(comma + 1, second - comma - 1), count) || first < 0 || count < 1)
      return 0;
    nodes = std::max(nodes, first + count);
  }
  return nodes;
}

pmi2_session::pmi2_session() : fd_(launcher_fd()) {
  say("cmd=init pmi_version=2 pmi_subversion=0\n");
  std::string line;
  while (line.size() < 200 && !line.ends_with('\n')) line += hear(1);
  if (line.find("rc=0") == std::string::npos || line.find("pmi_version=2") == std::string::npos) {
    throw no_boot("the launcher does not speak PMI-2 (" + one_line(line) + ")");
  }
  const auto text_of = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const fields said =
      request("fullinit", "pmijobid=" + text_of("PMI_JOBID") + ";pmirank=" + text_of("PMI_RANK") + ";threaded=FALSE;");
  rank_ = number(said, "rank");
  size_ = number(said, "size");
}

void pmi2_session::say(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw no_boot("the launcher does not listen any more (" + error_text(errno) + ")");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string pmi2_session::hear(std::size_t bytes) const {
  std::string text(bytes, '\0');
  for (std::size_t have = 0; have < bytes;) {
    const ssize_t got = ::recv(fd_.get(), text.data() + have, bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw no_boot("the launcher has gone");
    have += static_cast<std::size_t>(got);
  }
  return text;
}

/// For an answer that the other ranks may keep waiting.
void pmi2_session::await_answer(int timeout_s) const {
  const auto deadline = boot_clock::now() + std::chrono::seconds(timeout_s);
  pollfd wait{fd_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, ms_until(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    throw no_boot("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " has waited for " +
                  std::to_string(timeout_s) + " s (RMA_BOOT_TIMEOUT_MS) for the other ranks to come; is one of them " +
                  "stopped? The launcher does not say which");
  }
}

/// `timeout_s`: how long the answer may take; 0: the launcher gives it at once.
pmi2_session::fields pmi2_session::request(std::string_view command, std::string_view arguments, int timeout_s) {
  const std::string body = "cmd=" + std::string(command) + ";" + std::string(arguments);
  std::string length = std::to_string(body.size());
  length.insert(0, length_chars - length.size(), ' ');
  say(length + body);
  if (timeout_s > 0) await_answer(timeout_s);
  std::string answer_length = hear(length_chars);
  answer_length.erase(0, std::min(answer_length.find_first_not_of(' '), answer_length.size()));
  answer_length.erase(std::min(answer_length.find(' '), answer_length.size()));
  std::size_t bytes = 0;
  if (!to_number(answer_length, bytes) || bytes > message_bytes_max) {
    throw no_boot("the launcher's answer to " + std::string(command) + " has no length");
  }
  fields said = pmi2_fields(hear(bytes));
  const auto rc = said.find("rc");
  if (rc == said.end() || rc->second != "0") {
    const auto why = said.find("errmsg");
    throw no_boot("the launcher refuses " + std::string(command) +
                  (why == said.end() ? "" : ": " + one_line(why->second)));
  }
  return said;
}

int pmi2_session::number(const fields& from, std::string_view name) const {
  const auto found = from.find(name);
  int value = 0;
  if (found == from.end() || !to_number(std::string_view(found->second), value)) {
    throw no_boot("the launcher does not say " + std::string(name));
  }
  return value;
}

bool pmi2_session::one_node() {
  const fields said = request("info-getjobattr", "key=PMI_process_mapping;");
  const auto mapping = said.find("value");
  return mapping != said.end() && pmi2_nodes(mapping->second) == 1;
}

std::string pmi2_session::from_rank_0(const std::string& text, int timeout_s) {
  if (rank_ == 0) (void)request("kvs-put", "key=" + std::string(job_entry) + ";value=" + text + ";");
  (void)request("kvs-fence", "", timeout_s);
  const fields said = request("kvs-get", "jobid=;srcid=-1;key=" + std::string(job_entry) + ";");
  const auto value = said.find("value");
  if (value == said.end()) throw no_boot("the launcher has lost what rank 0 has stored");
  return value->second;
}

void pmi2_session::abort(int, std::string_view message) noexcept try {
  std::string text = one_line(message);
  std::ranges::replace(text, ';', ',');
  const std::string body = "cmd=abort;isworld=TRUE;msg=" + text + ";";
  std::string length = std::to_string(body.size());
  length.insert(0, length_chars - length.size(), ' ');
  say(length + body);
} catch (...) {  // the launcher has gone: so has the job
}

void pmi2_session::finalize() noexcept try {
  if (!fd_) return;
  (void)request("finalize", "");
  fd_.reset();
} catch (...) {  // the launcher has ended: there is no receiver
  fd_.reset();
}

std::unique_ptr<introduction> introduce_by_pmi2() { return std::make_unique<pmi2_session>(); }

}  // namespace rma::boot
