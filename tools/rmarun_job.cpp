// SPDX-License-Identifier: Apache-2.0
/// \file
/// Starting the ranks and waiting for events. Their consequences are in rmarun_verdict.cpp.
#include "rmarun_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "boot/descriptors.hpp"
#include "boot/digest.hpp"
#include "boot/interfaces.hpp"

namespace rma::launcher {

namespace {

using boot::boot_clock;

constexpr int key_bytes = 32;
constexpr int id_bytes = 12;
constexpr int last_reap_ms = 5000;
constexpr int sweep_ms = 100;  // between two looks for orphans; the end of one is known at once
constexpr std::array handled = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

boot_clock::duration seconds(double count) {
  // A century is as good as never, and does not overflow.
  return std::chrono::duration_cast<boot_clock::duration>(std::chrono::duration<double>(std::min(count, 3e9)));
}

/// Whoever started this process wanted that: nohup, or a shell that puts it into the background.
bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// Ranks of other hosts reach it by the address that this host's name stands for, or the one that was asked for.
std::string place_of_server(const settings& asked) {
  if (asked.hosts.empty()) return "local://";
  const char* const wanted = std::getenv("RMA_BOOT_INTERFACE");
  return boot::to_text(
      {.local = false, .host = boot::address_of_interface(wanted != nullptr ? wanted : ""), .port = "0"});
}

/// "tcp://..." as ranks are told it that must not look for the server in rank 0's process.
std::string told_address(const std::string& address) {
  constexpr std::string_view tcp = "tcp://";
  return address.starts_with(tcp) ? "rmarun://" + address.substr(tcp.size()) : address;
}

/// The limit that a process could not be started for, as the end of a message; nothing if it was no limit.
std::string limit_behind(int error) {
  if (boot::out_of_descriptors(error)) return "; " + boot::descriptors_remedy();
  if (error == EAGAIN) return "; processes are limited by ulimit -u and a control group's pids.max";
  return "";
}

}  // namespace

job::job(const settings& asked)
    : asked_(asked),
      inherited_children_(children()),
      id_("rma-" + boot::random_hex(id_bytes)),
      key_(boot::random_hex(key_bytes)),
      guardian_(id_),
      host_of_(asked.hosts.empty() ? std::vector<int>() : divide(asked.hosts, asked.ranks)),
      server_({.size = asked.ranks, .key = key_, .address = place_of_server(asked)}),
      pids_(static_cast<std::size_t>(asked.ranks), -1) {}

int job::run() {
  prepare_process();
  // Orphans of ranks become our children instead of init's: they can be found and killed at the end.
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (asked_.timeout_s > 0) timeout_at_ = boot_clock::now() + seconds(asked_.timeout_s);
  if (start_ranks()) {
    server_.start();
    if (asked_.tag_output) output_.start();
  }
  orders_.clear();
  while (running_ > 0) wait_for_events();
  clean_up();
  return verdict_.value_or(0);
}

void job::prepare_process() {
  // A connection and perhaps two pipes per rank are more than the usual soft limit; the ranks get that one back.
  if (::getrlimit(RLIMIT_NOFILE, &inherited_.open_files) == 0) {
    rlimit most = inherited_.open_files;
    most.rlim_cur = most.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &most);
  }
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : handled) {
    if (number == SIGCHLD || !is_ignored(number)) sigaddset(&ours, number);  // blocked, it would come nevertheless
  }
  (void)::sigprocmask(SIG_BLOCK, &ours, &inherited_.mask);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  (void)::sigaction(SIGCHLD, &plain, nullptr);  // if it was ignored, the ends of ranks would go unseen
  plain.sa_handler = SIG_IGN;
  (void)::sigaction(SIGPIPE, &plain, &inherited_.on_pipe);
  signals_.reset(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
}

namespace {

/// A job that hangs is to say where its ranks are before its time is over. Empty: they do so by themselves, or shall
/// not.
std::string stall_report_before(double timeout_s) {
  constexpr double least_s = 4, most_s = 80, share = 0.75;
  if (timeout_s < least_s || timeout_s >= most_s || std::getenv("RMA_STALL_REPORT_S") != nullptr) return {};
  return fmt::format("RMA_STALL_REPORT_S={}", static_cast<int>(share * timeout_s));
}

}  // namespace

std::vector<std::string> job::changes_for(int rank) const {
  std::vector<std::string> changes;
  if (std::string report = stall_report_before(asked_.timeout_s); !report.empty()) changes.push_back(std::move(report));
  for (const std::string& each : asked_.exports) {
    const std::string start = each.substr(0, each.find('=')) + "=";
    std::erase_if(changes, [&start](const std::string& before) { return before.starts_with(start); });
    if (each.starts_with(start)) changes.push_back(each);  // a name alone is inherited anyway
  }
  const char* outer = std::getenv(job_variable);
  const std::string path = outer != nullptr ? std::string(outer) + "/" + id_ : id_;
  changes.push_back(fmt::format("{}={}", job_variable, path));
  changes.push_back("RMA_BOOT=" + told_address(server_.address()));
  changes.push_back("RMA_KEY=" + key_);
  changes.push_back(fmt::format("RMA_SIZE={}", asked_.ranks));
  const int host = host_of_.empty() ? 0 : host_of_[static_cast<std::size_t>(rank)];
  const auto local = host_of_.empty() ? asked_.ranks : std::ranges::count(host_of_, host);
  changes.push_back(fmt::format("RMA_LOCAL_RANKS={}", local));
  changes.push_back(fmt::format("RMA_RANK={}", rank));
  changes.push_back("RMA_PROCESS_SETS=" + joined(asked_.process_sets));
  // Blocks of equal size, give or take one.
  const auto node = static_cast<long long>(rank) * asked_.nodes / asked_.ranks;
  if (!host_of_.empty()) {
    changes.push_back("RMA_NODE=" + asked_.hosts[static_cast<std::size_t>(host)].name);
    return changes;
  }
  changes.push_back(asked_.nodes > 0 ? fmt::format("RMA_NODE=node{}", node) : "RMA_NODE=");
  return changes;
}

std::vector<std::string> job::command_of(int rank) const {
  std::vector<std::string> command;
  if (asked_.debugged < 0 || asked_.debugged == rank) command = asked_.debugger;
  command.insert(command.end(), asked_.command.begin(), asked_.command.end());
  return command;
}

namespace {

/// The library's settings and what the user exports go along; the rest of the environment is the other host's.
std::vector<std::string> changes_elsewhere(std::vector<std::string> changes, const std::vector<std::string>& exports) {
  std::vector<std::string> all;
  for (char** at = ::environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view each = *at;
    const std::string_view name = each.substr(0, each.find('='));
    if (name.starts_with("RMA_") || std::ranges::find(exports, name) != exports.end()) all.emplace_back(each);
  }
  for (std::string& each : changes) {
    const std::string start = each.substr(0, each.find('=') + 1);
    std::erase_if(all, [&start](const std::string& before) { return before.starts_with(start); });
    all.push_back(std::move(each));
  }
  return all;
}

}  // namespace

/// sshd refuses connections while many others (10, by its default) have not proven who they are.
void job::wait_for_starts() {
  constexpr std::size_t unread_max = 8;
  constexpr std::chrono::seconds patience{20};
  constexpr int look_again_ms = 5;
  const auto until = boot_clock::now() + patience;
  const auto is_read = [](const boot::unique_fd& order) {
    int left = 0;
    return ::ioctl(order.get(), FIONREAD, &left) != 0 || left == 0;
  };
  for (;;) {
    std::erase_if(orders_, is_read);
    if (orders_.size() < unread_max || boot_clock::now() >= until) return;
    (void)::poll(nullptr, 0, look_again_ms);
  }
}

/// A rank of another host is ssh here; what to start there, the job's key included, goes through its standard input.
start_outcome job::start_elsewhere(int rank, const tagged_output::ends& tagged) {
  const std::string& name = asked_.hosts[static_cast<std::size_t>(host_of_[static_cast<std::size_t>(rank)])].name;
  const std::vector<std::string> command = command_at(asked_.ssh, name);
  const std::vector<std::string> environment = environment_with({});
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.pid = -1, .error = errno};
  boot::unique_fd order_out{ends[0]};
  boot::unique_fd order_in{ends[1]};
  const start_outcome outcome = start_process({.rank = rank,
                                               .command = command,
                                               .environment = environment,
                                               .stdin_fd = order_out.get(),
                                               .stdout_fd = tagged.out ? tagged.out.get() : STDOUT_FILENO,
                                               .stderr_fd = tagged.err ? tagged.err.get() : STDERR_FILENO,
                                               .inherited = inherited_});
  if (outcome.error != 0) return outcome;
  const std::string order = order_for_remote(changes_elsewhere(changes_for(rank), asked_.exports), command_of(rank));
  for (std::size_t done = 0; done < order.size();) {  // ssh reads it as soon as it runs; SIGPIPE is ignored
    const ssize_t wrote = ::write(order_in.get(), order.data() + done, order.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;  // it has ended, and its exit status says why
    done += static_cast<std::size_t>(wrote);
  }
  orders_.push_back(std::move(order_out));
  wait_for_starts();
  return outcome;
}

/// False if not all could be started; the job is then being ended.
bool job::start_ranks() {
  std::optional<core_binding> binding;
  if (asked_.bind_core) binding.emplace();
  if (binding && binding->cores() == 0) say("--bind core: the cores of this machine cannot be found out; not bound");
  if (binding && binding->cores() > 0 && binding->cores() < asked_.ranks) {
    say(fmt::format("--bind core: {} ranks share {} cores", asked_.ranks, binding->cores()));
  }
  const boot::unique_fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const boot::unique_fd typed = asked_.debugged < 0 ? input_.open() : boot::unique_fd();
  for (int rank = 0; rank < asked_.ranks; ++rank) {
    tagged_output::ends tagged;
    if (asked_.tag_output) tagged = output_.add(rank);
    if (!host_of_.empty()) {
      if (!note_start(rank, start_elsewhere(rank, tagged), asked_.ssh)) return false;
      continue;
    }
    auto changes = changes_for(rank);
    changes.push_back(fmt::format("RMA_CORE_GROUP={}", binding ? binding->group_of(rank) : 0));
    const auto environment = environment_with(changes);
    const std::vector<std::string> command = command_of(rank);
    const int first = std::max(asked_.debugged, 0);  // the rank that has the standard input
    const int input = rank != first ? nothing.get() : typed ? typed.get() : STDIN_FILENO;
    const start_outcome outcome = start_process({.rank = rank,
                                                 .command = command,
                                                 .environment = environment,
                                                 .stdin_fd = input,
                                                 .stdout_fd = tagged.out ? tagged.out.get() : STDOUT_FILENO,
                                                 .stderr_fd = tagged.err ? tagged.err.get() : STDERR_FILENO,
                                                 .inherited = inherited_,
                                                 .binding = binding ? &*binding : nullptr,
                                                 .has_terminal = rank == asked_.debugged});
    if (!note_start(rank, outcome, command.front())) return false;
  }
  return true;
}

/// False if the rank could not be started: the job is being ended.
bool job::note_start(int rank, const start_outcome& outcome, const std::string& what) {
  if (outcome.error != 0) {
    say(fmt::format("cannot start '{}': {}{}", what, boot::error_text(outcome.error), limit_behind(outcome.error)));
    begin_end(outcome.error == ENOENT ? exit_not_found : exit_cannot_execute);
    return false;
  }
  pids_[static_cast<std::size_t>(rank)] = outcome.pid;
  ++running_;
  return true;
}

void job::wait_for_events() {
  std::vector<pollfd> polled = {{signals_.get(), POLLIN, 0}, {ends_itself() ? server_.abort_fd() : -1, POLLIN, 0}};
  const std::size_t fixed = polled.size();
  const int input_ms = input_.watch(polled);
  const int ready = ::poll(polled.data(), polled.size(), wait_ms(input_ms));
  if (ready > 0) {
    if (polled[1].revents != 0) on_abort();
    if (polled[0].revents != 0) on_signals();
    input_.serve(polled[fixed], polled[fixed + 1]);
  }
  on_deadlines();
}

int job::wait_ms(int most_ms) const {
  const auto next = std::min(ends_itself() ? timeout_at_ : boot_clock::time_point::max(), phase_until_);
  if (next == boot_clock::time_point::max()) return most_ms;
  return most_ms < 0 ? boot::ms_until(next) : std::min(most_ms, boot::ms_until(next));
}

void job::on_signals() {
  signalfd_siginfo news;
  while (::read(signals_.get(), &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
    on_signal(static_cast<int>(news.ssi_signo));
  }
}

void job::on_signal(int number) {
  switch (number) {
    case SIGCHLD: return reap();
    case SIGTSTP:
      signal_ranks(SIGTSTP);
      (void)::raise(SIGSTOP);
      return;
    case SIGCONT: return signal_ranks(SIGCONT);
    case SIGUSR1:
    case SIGUSR2: return signal_ranks(number);
    case SIGINT:
    case SIGTERM: ++end_requests_; break;
    default: break;
  }
  // Whoever presses Ctrl-C a third time has waited long enough.
  constexpr int end_requests_max = 3;
  signal_ranks(end_requests_ >= end_requests_max ? SIGKILL : number);
  signal_ranks(SIGCONT);  // a stopped rank would not see the other
}

void job::reap() {
  for (;;) {
    int wait_status = 0;
    const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG | WUNTRACED);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    if (WIFSTOPPED(wait_status)) {
      on_stop(pid, WSTOPSIG(wait_status));
      continue;
    }
    std::erase(inherited_children_, pid);  // its number may become that of an orphan
    const auto at = std::find(pids_.begin(), pids_.end(), pid);
    if (at == pids_.end()) continue;  // not a rank
    *at = -1;
    --running_;
    on_end(static_cast<int>(at - pids_.begin()), pid, wait_status);
  }
}

/// The groups of ranks are in the background of a terminal: one that uses it hangs, and would not say why.
void job::on_stop(pid_t pid, int number) {
  const auto at = std::find(pids_.begin(), pids_.end(), pid);
  if ((number != SIGTTIN && number != SIGTTOU) || at == pids_.end() || told_of_stop_) return;
  told_of_stop_ = true;
  say(
      fmt::format("rank {} was stopped because it uses the terminal, which is not for ranks; what is typed goes to the "
                  "standard input of rank 0",
                  at - pids_.begin()));
}

void job::signal_ranks(int number) const {
  for (const pid_t pid : pids_) {
    if (pid > 0) (void)::kill(-pid, number);
  }
}

/// All ranks have ended. Their own children perhaps have not; and the server must outlive none of them. Orphans that
/// cannot be killed (one that hangs in the kernel, or that a debugger holds) are left behind in the end, or when the
/// user asks.
void job::clean_up() {
  const auto until = boot_clock::now() + std::chrono::milliseconds(last_reap_ms);
  const int asked_before = end_requests_;
  const auto others = [this] {
    std::vector<pid_t> left = children();
    std::erase(left, guardian_.pid());
    std::erase_if(left, [this](pid_t pid) { return std::ranges::count(inherited_children_, pid) != 0; });
    return left;
  };
  for (reap(); !others().empty() && boot_clock::now() < until && end_requests_ == asked_before; reap()) {
    kill_marked(id_, until);
    for (const pid_t pid : others()) (void)::kill(pid, SIGKILL);
    pollfd news{signals_.get(), POLLIN, 0};
    (void)::poll(&news, 1, std::min(sweep_ms, boot::ms_until(until)));
    on_signals();
  }
  if (asked_.debugged >= 0) take_terminal(STDIN_FILENO);  // back from the debugger
  guardian_.dismiss();
  server_.stop();
  // From here on only output can take time, and a signal may end that.
  (void)::sigprocmask(SIG_SETMASK, &inherited_.mask, nullptr);
  output_.finish();
}

}  // namespace rma::launcher
