// SPDX-License-Identifier: Apache-2.0
// The conformance suite as a program; `usage` below has its options.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "suite.hpp"
#include "threads.hpp"

namespace {

using conformance::options;

constexpr const char* usage = R"(Usage: rmarun -n N conformance [OPTIONS]

  --case REGEX      only the cases whose name it is found in
  --seed S          the seed that a failure printed
  --effort P        percent of the normal number of repetitions
  --one-kind        each case with one kind of window only; the seed says which
  --long            also the cases that need minutes or much memory
  --threads N       N ranks as threads of this process, without a launcher
  --set NAME=VALUE  a setting, with --threads; may be repeated
  --list            print the names of the cases
  --help            print this

Settings are RMA_* variables of the environment; rma-info lists them. The exit status is 0 if no case has failed.
)";

/// Whether this process speaks for all: what needs no job is said without one.
bool speaks() {
  const char* const rank = std::getenv("RMA_RANK");
  return rank == nullptr || std::string_view(rank) == "0";
}

options parse(int argc, char** argv) {
  options how;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    const auto value = [&] {
      if (i + 1 >= argc) throw std::invalid_argument(std::string(word) + " needs a value");
      return std::string(argv[++i]);
    };
    if (word == "--help" || word == "-h") {
      how.help = true;
    } else if (word == "--case") {
      how.pattern = value();
    } else if (word == "--seed") {
      how.seed = std::stoull(value());
    } else if (word == "--list") {
      how.list = true;
    } else if (word == "--one-kind") {
      how.one_kind = true;
    } else if (word == "--long") {
      how.long_cases = true;
    } else if (word == "--threads") {
      how.threads = std::stoi(value());
    } else if (word == "--effort") {
      how.effort_percent = static_cast<unsigned>(std::stoul(value()));
    } else if (word == "--set") {
      const std::string pair = value();
      const auto cut = pair.find('=');
      if (cut == std::string::npos) throw std::invalid_argument("--set needs NAME=VALUE, not " + pair);
      how.settings.emplace_back(pair.substr(0, cut), pair.substr(cut + 1));
    } else if (word.starts_with("--rma-")) {
      continue;  // the launcher's, for the runtime
    } else {
      throw std::invalid_argument("unknown option " + std::string(word) + "; --help lists the options");
    }
  }
  return how;
}

/// Ends the job if the other ranks do not come to the end of a case that this rank left by an exception. The time
/// is only an upper limit on how long a failed test hangs.
class failure_watchdog {
 public:
  failure_watchdog(rma::Runtime& runtime, const std::string& name)
      : thread_([this, &runtime, name] {
          std::unique_lock hold(mutex_);
          if (over_.wait_for(hold, std::chrono::seconds(20), [this] { return done_; })) return;
          runtime.abort(1, name + " failed on rank " + std::to_string(runtime.rank()) + " and the others wait for it");
        }) {}
  ~failure_watchdog() {
    {
      const std::scoped_lock hold(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto guard = [](rma::Runtime& runtime, const std::string& name) -> std::shared_ptr<void> {
      return std::make_shared<failure_watchdog>(runtime, name);
    };
    options how = parse(argc, argv);
    if (how.help || how.list) {
      if (how.help && speaks()) std::fputs(usage, stdout);
      if (!how.help && speaks()) conformance::list_cases(how);
      return 0;
    }
    if (how.threads > 0) {
      const std::regex once(how.pattern);  // fills the locale's tables, which libstdc++ does not let threads do at once
      return conformance::run_as_threads(how.threads, how.settings, [&](rma::Runtime& runtime) {
        return conformance::run_suite(runtime, how, guard);
      });
    }
    rma::Runtime runtime(argc, argv);
    return conformance::run_suite(runtime, how, guard);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "conformance: %s\n", e.what());
    return 1;
  }
}
