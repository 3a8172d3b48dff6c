// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace rma::verbs {
namespace {

// "7f0000000000-7f0000001000 rw-p 00000000 00:00 0   name": the name is not needed.
constexpr std::size_t head_bytes_max = 96;

/// Removes the first word.
std::string_view next_word(std::string_view& line) noexcept {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

std::uintptr_t from_hex(std::string_view digits) noexcept {
  std::uintptr_t value = 0;
  for (const char c : digits) value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

mapping parse(std::string_view line) noexcept {
  const std::string_view range = next_word(line);
  const std::string_view permissions = next_word(line);
  next_word(line);  // offset
  next_word(line);  // device
  const std::string_view inode = next_word(line);
  const std::size_t dash = range.find('-');
  return {{from_hex(range.substr(0, dash)), from_hex(range.substr(dash + 1))},
          permissions.size() == 4 && permissions[3] == 'p' && inode == "0"};
}

/// Checks that a range consists of private memory without a file.
class kind_check final : public mapping_visitor {
 public:
  explicit kind_check(page_range pages) noexcept : pages_(pages), covered_(pages.first) {}
  void visit(const mapping& m) noexcept override {
    fits_ = fits_ && m.private_anonymous && m.pages.first <= covered_;
    covered_ = m.pages.last;
  }
  [[nodiscard]] bool holds() const noexcept { return fits_ && covered_ >= pages_.last; }

 private:
  page_range pages_;
  std::uintptr_t covered_;
  bool fits_ = true;
};

}  // namespace

bool visit_mappings(page_range within, mapping_visitor& to) noexcept {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[4096];
  char head[head_bytes_max];
  std::size_t head_bytes = 0;
  bool more = true;
  ssize_t n = 0;
  while (more && ((n = ::read(fd, text, sizeof text)) > 0 || (n < 0 && errno == EINTR))) {
    for (ssize_t i = 0; i < n && more; ++i) {
      if (text[i] != '\n') {
        if (head_bytes < head_bytes_max) head[head_bytes++] = text[i];
        continue;
      }
      const mapping m = parse({head, head_bytes});
      head_bytes = 0;
      if (m.pages.overlaps(within)) to.visit(m);
      more = m.pages.last < within.last;
    }
  }
  ::close(fd);
  return n >= 0;
}

bool all_private_anonymous(page_range pages) noexcept {
  kind_check check(pages);
  return visit_mappings(pages, check) && check.holds();
}

}  // namespace rma::verbs
