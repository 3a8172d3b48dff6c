// SPDX-License-Identifier: Apache-2.0
/// \file
/// The stage that the programs of the fault tests share: who dies, how the others come into position, what is reported.
///
/// One line of standard output per event, read by faults_test.py:
///
///   job boot=local://NAME            rank 0, at the start
///   killed rank=V at=NS              before the signal is sent; NS is CLOCK_MONOTONIC
///   told rank=R of=V code=C at=NS    a blocked call of R ended with this error
///   untold rank=R in=CALL            it ended without one
///   wrong rank=R WHAT                something else is not as it should be
///   survived rank=R                  R did everything that survivors can do
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

namespace faults {

/// Nanoseconds of the clock that all processes of the machine share.
std::int64_t monotonic_ns();

/// Prints one line by one system call, so that lines of several ranks do not mix.
void report(const std::string& line);

/// The sets of windows and the roles of one run.
class stage {
 public:
  stage(rma::Runtime& runtime, int victim, std::uint64_t seed);

  rma::Runtime& runtime;
  rma::Team world;
  int victim;
  std::uint64_t seed;
  int home;                           ///< a survivor whose part is locked; not the killer where there are enough ranks
  int killer;                         ///< a survivor that kills the victim when it must be inside a call
  std::vector<std::uint64_t> memory;  ///< memory of `created`
  rma::Window<std::uint64_t> window;  ///< for the scenario
  rma::Window<std::uint64_t> created;
  rma::Window<std::uint64_t> spare;  ///< untouched until the victim is dead

  [[nodiscard]] int rank() const { return world.rank(); }
  [[nodiscard]] int size() const { return world.size(); }
  [[nodiscard]] bool is_victim() const { return rank() == victim; }
  [[nodiscard]] std::vector<int> survivors() const;

  /// Tells rank `to` that this one enters its call now.
  void ready(int to);
  /// Waits until all of `ranks` have said ready.
  void wait_ready(const std::vector<int>& ranks);
  /// Waits until all of `ranks` have said ready and sleep in their calls.
  void wait_asleep(const std::vector<int>& ranks);
  /// The end of this process, by SIGKILL.
  [[noreturn]] void die();
  /// Kills the victim when it is asleep in its call.
  void kill_asleep();
  /// Kills the victim now.
  void kill_now();

  /// `call` must end with peer_failed that names the victim.
  void must_be_told(const char* name, const std::function<void()>& call);
  void wrong(const std::string& what);

 private:
  std::vector<pid_t> pids_;
  rma::Window<std::uint64_t> board_;
};

using part = void (*)(stage&);

/// One way to die. The victim plays `victim`, everybody else `others`.
struct scenario {
  std::string_view name;
  part victim;
  part others;
};

const scenario* find_scenario(std::string_view name);
/// Names of all of them, one per line.
std::string scenario_names();

/// Does what survivors must be able to do after a death.
void live_on(stage& on);

/// All kinds of operations on random targets. In storm, until the victim is dead.
void storm_until_death(stage& on);
void storm_until_killed(stage& on);

/// Messages of all sizes between the victim and each survivor, until it is dead.
void messages_until_death(stage& on);
void messages_until_killed(stage& on);
void messages_until_step(stage& on);

}  // namespace faults
