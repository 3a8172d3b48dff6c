// SPDX-License-Identifier: Apache-2.0
// rmarun whose standard input is a terminal.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "launched.hpp"

using namespace rma::boot;
using namespace rma::boot::test;

namespace {

/// A rank that says who rmarun is, answers USR1, and ends with the first line that it reads.
constexpr const char* reader = "trap 'echo signal' USR1; echo $PPID; until read word; do :; done; echo \"read $word\"";

/// A rank that goes past its standard input.
constexpr const char* prompter = "echo $PPID; read word </dev/tty; read word </dev/tty; exec sleep 1000";

enum class is { controlling, another };

/// rmarun at a terminal of its own. Where that is the controlling one it begins in the background, as by `rmarun ...
/// &`.
class at_terminal {
 public:
  explicit at_terminal(is kind, const char* script = reader)
      : script_(script), terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    int out[2];
    int go[2];
    REQUIRE((::grantpt(terminal_.get()) == 0 && ::unlockpt(terminal_.get()) == 0));
    REQUIRE((::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(go, O_CLOEXEC) == 0));
    out_.reset(out[0]);
    go_.reset(go[1]);
    name_ = ::ptsname(terminal_.get());
    shell_ = ::fork();
    if (shell_ == 0) kind == is::controlling ? play_shell(out[1], go[0]) : start(out[1], O_NOCTTY);
    ::close(out[1]);
    ::close(go[0]);
    rmarun_ = std::stoi("0" + line());
    REQUIRE(rmarun_ > 0);
  }
  at_terminal(const at_terminal&) = delete;
  at_terminal& operator=(const at_terminal&) = delete;
  ~at_terminal() {
    if (rmarun_ > 0) ::kill(rmarun_, SIGKILL);
    ::kill(shell_, SIGKILL);
    (void)::waitpid(shell_, nullptr, 0);
  }

  void type(const std::string& text) const { REQUIRE(::write(terminal_.get(), text.data(), text.size()) > 0); }
  void to_foreground() { go_.reset(); }
  /// rmarun has been at all that it waited for.
  void turn() {
    for (int i = 0; i < 2; ++i) {
      ::kill(rmarun_, SIGUSR1);
      REQUIRE(line() == "signal");
    }
  }
  void end() const { ::kill(rmarun_, SIGTERM); }
  /// The next line of output, or error; what there is of it after 30 s.
  std::string line() {
    std::string text;
    pollfd wait{out_.get(), POLLIN, 0};
    for (char c = 0; ::poll(&wait, 1, patience_ms) == 1 && ::read(out_.get(), &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

 private:
  [[noreturn]] void start(int out, int how) const {
    ::dup2(::open(name_.c_str(), O_RDWR | how), STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execl(RMARUN_PATH, RMARUN_PATH, "sh", "-c", script_, static_cast<char*>(nullptr));
    ::_exit(125);
  }

  /// A session whose foreground is this process, until it is told; fg tells a job that runs nothing.
  [[noreturn]] void play_shell(int out, int go) {
    ::setsid();
    const int terminal = ::open(name_.c_str(), O_RDWR | O_CLOEXEC);  // the controlling one by that
    const pid_t job = ::fork();
    ::setpgid(job, job);
    if (job == 0) start(out, 0);
    go_.reset();
    char told = 0;
    (void)!::read(go, &told, 1);
    ::tcsetpgrp(terminal, job);
    (void)::waitpid(job, nullptr, 0);
    ::_exit(0);
  }

  const char* script_;
  unique_fd terminal_, out_, go_;
  std::string name_;
  pid_t shell_ = -1;
  pid_t rmarun_ = -1;
};

}  // namespace

// Goal: what is typed goes to rank 0 once rmarun is in the foreground, although nothing tells it that it is.
// Method: it has seen in the background that there is input.
// Break: in the background, wait for SIGCONT.
TEST_CASE("a job comes to the foreground", "[boot][rmarun]") {
  at_terminal job(is::controlling);
  job.type("one\n");
  job.turn();
  job.to_foreground();
  CHECK(job.line() == "read one");
}

// Goal: a terminal that is not the controlling one is read, too.
// Break: read only where rmarun's process group is known to be in the foreground.
TEST_CASE("standard input is another terminal", "[boot][rmarun]") {
  at_terminal job(is::another);
  job.type("two\n");
  CHECK(job.line() == "read two");
}

// Goal: a rank that hangs since the terminal is not its own does not do so in silence, and ends with the job.
// Break: do not look at who was stopped.
TEST_CASE("a rank that reads from the terminal itself", "[boot][rmarun]") {
  at_terminal job(is::controlling, prompter);
  job.to_foreground();
  CHECK(job.line() ==
        "rmarun: rank 0 was stopped because it uses the terminal, which is not for ranks; what is typed goes to the "
        "standard input of rank 0");
  job.end();
  const std::string last = job.line();
  CHECK(last.find("was killed by signal 15") != std::string::npos);
}
