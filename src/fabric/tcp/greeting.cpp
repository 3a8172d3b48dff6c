// SPDX-License-Identifier: Apache-2.0
#include "fabric/tcp/greeting.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/assert.hpp"

namespace rma::tcp {
namespace {

template <class T>
std::string_view text_of(const T& what) noexcept {
  return {reinterpret_cast<const char*>(&what), sizeof what};
}

}  // namespace

greeting::greeting(boot::unique_fd line, int rank, int size, std::int64_t until_ns, int peer)
    : line_(std::move(line)),
      rank_(rank),
      size_(size),
      peer_(peer),
      connects_(true),
      phase_(phase::connecting),
      until_ns_(until_ns),
      connector_nonce_(boot::random_digest()) {}

greeting::greeting(boot::unique_fd line, int rank, int size, std::int64_t until_ns)
    : line_(std::move(line)),
      rank_(rank),
      size_(size),
      peer_(-1),
      connects_(false),
      phase_(phase::challenged),
      until_ns_(until_ns),
      listener_nonce_(boot::random_digest()) {
  challenge first;
  first.nonce = listener_nonce_;
  (void)send(&first, sizeof first);  // if this fails, no introduction arrives either
}

greeting::outcome greeting::step(std::string_view key) noexcept {
  RMA_ASSERT(fd() >= 0 && (connects_ || phase_ != phase::connecting));
  RMA_ASSERT(!connects_ || (peer_ >= 0 && peer_ < size_));
  if (!connects_) return take_introduction(key);
  if (phase_ == phase::connecting) {
    int error = 0;
    socklen_t bytes = sizeof error;
    const bool known = ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0;
    // A reset means that the connection was made, and the peer has closed it after a time-out.
    if (known && (error == 0 || error == ECONNRESET || error == EPIPE)) phase_ = phase::challenged;
    if (!known || error != 0) return outcome::failed;
    return outcome::goes_on;
  }
  return phase_ == phase::challenged ? introduce(key) : take_verdict(key);
}

greeting::outcome greeting::introduce(std::string_view key) noexcept {
  challenge asked;
  bool failed = false;
  if (!receive(sizeof asked, failed)) return failed ? outcome::failed : outcome::goes_on;
  const challenge expected;
  std::memcpy(&asked, in_.data(), sizeof asked);
  if (asked.magic != expected.magic) return outcome::failed;
  listener_nonce_ = asked.nonce;
  introduction mine;
  mine.from = static_cast<std::uint32_t>(rank_);
  mine.to = static_cast<std::uint32_t>(peer_);
  mine.size = static_cast<std::uint32_t>(size_);
  mine.nonce = connector_nonce_;
  if (!prove(key, "connects", word::accept, mine.proof) || !send(&mine, sizeof mine)) return outcome::failed;
  phase_ = phase::introduced;
  received_ = 0;
  return outcome::goes_on;
}

greeting::outcome greeting::take_introduction(std::string_view key) noexcept {
  introduction theirs;
  bool failed = false;
  if (!receive(sizeof theirs, failed)) return failed ? outcome::failed : outcome::goes_on;
  std::memcpy(&theirs, in_.data(), sizeof theirs);
  const auto size = static_cast<std::uint32_t>(size_);
  if (theirs.size != size || theirs.from >= size || theirs.to != static_cast<std::uint32_t>(rank_))
    return outcome::failed;
  peer_ = static_cast<int>(theirs.from);
  connector_nonce_ = theirs.nonce;
  boot::digest expected{};
  if (!prove(key, "connects", word::accept, expected) || !boot::equal(expected, boot::bytes_of(theirs.proof)))
    return outcome::failed;
  return outcome::introduced;
}

bool greeting::answer(std::string_view key, word said) noexcept {
  verdict mine;
  mine.said = said;
  return prove(key, "listens", said, mine.proof) && send(&mine, sizeof mine);
}

greeting::outcome greeting::take_verdict(std::string_view key) noexcept {
  verdict theirs;
  bool failed = false;
  if (!receive(sizeof theirs, failed)) return failed ? outcome::failed : outcome::goes_on;
  std::memcpy(&theirs, in_.data(), sizeof theirs);
  boot::digest expected{};
  if (!prove(key, "listens", theirs.said, expected) || !boot::equal(expected, boot::bytes_of(theirs.proof)))
    return outcome::failed;
  return theirs.said == word::accept ? outcome::accept : outcome::mine_comes;
}

// Reads no more bytes than requested: later ones belong to the connection.
bool greeting::receive(std::size_t bytes, bool& failed) noexcept {
  while (received_ < bytes) {
    const ssize_t n = ::recv(fd(), in_.data() + received_, bytes - received_, 0);
    if (n > 0) {
      received_ += static_cast<std::size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      failed = true;
      return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool greeting::send(const void* what, std::size_t bytes) noexcept {
  return ::send(fd(), what, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

// The proof includes the ranks, so that neither side's proof can be replayed to it.
bool greeting::prove(std::string_view key, std::string_view who, word said, boot::digest& proof) const noexcept {
  const std::uint32_t connector = static_cast<std::uint32_t>(connects_ ? rank_ : peer_);
  const std::uint32_t listener = static_cast<std::uint32_t>(connects_ ? peer_ : rank_);
  try {
    std::string text("rma tcp ");
    text += who;
    text += text_of(said);
    text += text_of(connector);
    text += text_of(listener);
    text += text_of(size_);
    text += boot::bytes_of(listener_nonce_);
    text += boot::bytes_of(connector_nonce_);
    return boot::authenticate(key, text, proof);
  } catch (...) {
    return false;  // no memory
  }
}

}  // namespace rma::tcp
