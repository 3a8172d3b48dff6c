// SPDX-License-Identifier: Apache-2.0
// Goal: a setting has the value that was given last in the order default, environment, Config, hint; what is not a
// setting or not a value of it is an error that lists what would be.
#include "core/settings.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rma/rma.hpp"

using namespace rma;
using rma::detail::knob;
using rma::detail::settings;

namespace {

/// A variable of the environment until the end of the scope.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) {
    if (const char* const now = std::getenv(name)) before_ = now;
    ::setenv(name, value, 1);
  }
  ~variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

Config with(std::map<std::string, std::string> values, bool environment = false) {
  Config config;
  config.environment = environment;
  config.settings = std::move(values);
  return config;
}

/// The code and the text of what reading the settings throws.
std::pair<status, std::string> refusal(const Config& config) {
  try {
    const settings s(config);
    return {status::done, ""};
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
}

Setting listed(const settings& s, std::string_view name) {
  const auto all = s.list();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Setting& each) { return each.name == name; });
  REQUIRE(at != all.end());
  return *at;
}

bool names(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::all_of(words.begin(), words.end(), [&](auto word) { return text.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("without anything the defaults hold", "[core][settings]") {
  const settings s(with({}));
  CHECK(s.number(knob::boot_timeout_ms) == 60000);
  CHECK(s.is(knob::user_memory, "auto"));
  CHECK(s.on(knob::intranode));
  CHECK_FALSE(s.on(knob::progress_thread));
  CHECK(s.is(knob::progress_thread, "auto"));
  CHECK(listed(s, "RMA_SPIN_US").origin == "default");
  for (const Setting& each : s.list()) {
    CAPTURE(each.name);
    CHECK_FALSE(each.choices.empty());
    CHECK_FALSE(each.summary.empty());
  }
}

TEST_CASE("Config wins over the environment, which wins over the default", "[core][settings]") {
  const variable spin("RMA_SPIN_US", "7");
  const variable promote("RMA_PROMOTE", "1");
  const settings s(with({{"RMA_SPIN_US", "9"}}, true));
  CHECK(s.number(knob::spin_us) == 9);
  CHECK(listed(s, "RMA_SPIN_US").origin == "config");
  CHECK(s.on(knob::promote));
  CHECK(listed(s, "RMA_PROMOTE").origin == "environment");
  const settings closed(with({}, false));
  CHECK(closed.number(knob::spin_us) == 20);
  CHECK_FALSE(closed.on(knob::promote));
}

TEST_CASE("the members of Config win over its list", "[core][settings]") {
  Config config = with({{"RMA_RANK", "5"}, {"RMA_SIZE", "9"}, {"RMA_NODE", "listed"}});
  config.rank = 1;
  config.size = 2;
  config.node = "member";
  const settings s(config);
  CHECK(s.number(knob::rank) == 1);
  CHECK(s.number(knob::size) == 2);
  CHECK(s.is(knob::node, "member"));
}

TEST_CASE("a hint wins over the setting", "[core][settings]") {
  Config config = with({{"RMA_ACCUMULATE", "element"}, {"RMA_SEGMENT_BYTES", "64M"}});
  Runtime runtime(config);
  Team world = runtime.world();
  const detail::window_plan plan{detail::call::allocate, nullptr, 8, 8, 8};
  detail::window_view* const by_setting = detail::make_window(world, plan, {});
  detail::window_view* const by_hint = detail::make_window(world, plan, {.accumulate = accumulate_mode::striped});
  CHECK(by_setting->mode == accumulate_mode::element);
  CHECK(by_hint->mode == accumulate_mode::striped);
  CHECK(detail::free_window(by_setting) == status::done);
  CHECK(detail::free_window(by_hint) == status::done);
}

TEST_CASE("an unknown name is an error that says the nearest setting, or lists all", "[core][settings]") {
  const auto [code, text] = refusal(with({{"RMA_USER_MEMROY", "auto"}}));
  CHECK(code == status::bad_setting);
  CAPTURE(text);
  CHECK(names(text, {"RMA_USER_MEMROY", "config", "RMA_USER_MEMORY", "rma-info"}));

  const variable wrong("RMA_NO_SUCH_THING", "1");
  const auto [environment_code, environment_text] = refusal(with({}, true));
  CHECK(environment_code == status::bad_setting);
  CAPTURE(environment_text);
  CHECK(names(environment_text, {"RMA_NO_SUCH_THING", "environment", "RMA_SPIN_US"}));
  CHECK(refusal(with({}, false)).first == status::done);
}

TEST_CASE("a setting that was replaced says by what", "[core][settings]") {
  const auto [code, text] = refusal(with({{"RMA_ACCUMULATE_MODE", "device"}}));
  CHECK(code == status::bad_setting);
  CAPTURE(text);
  CHECK(names(text, {"RMA_ACCUMULATE_MODE", "replaced by RMA_ACCUMULATE", "direct"}));
  CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("settings that became values of others say of which", "[core][settings]") {
  const std::pair<const char*, const char*> old[] = {{"RMA_LOCK_NETWORK", "RMA_LOCK: say network:agent"},
                                                     {"RMA_LOCK_HOME", "RMA_LOCK: say hybrid:home=cpu"},
                                                     {"RMA_LOCK_POLICY", "RMA_LOCK: say hybrid:naive"},
                                                     {"RMA_STRIPE_BIAS", "RMA_ACCUMULATE: say striped:unbiased"}};
  for (const auto& [name, by] : old) {
    const auto [code, text] = refusal(with({{name, "on"}}));
    CAPTURE(text);
    CHECK(code == status::bad_setting);
    CHECK(names(text, {name, "config", "was replaced by", by}));
    CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("RMA_LOCK takes options behind colons", "[core][settings]") {
  const auto lock = [](const char* value) { return settings(with({{"RMA_LOCK", value}})).lock(); };
  CHECK(lock("auto").protocol == lock_protocol::automatic);
  CHECK(lock("two-sided:deferred").deferred);
  CHECK(lock("network").scheme == lock_scheme::automatic);
  CHECK(lock("network:fompi").scheme == lock_scheme::fompi);
  const auto hybrid = lock("hybrid:home=network:threshold:8");
  CHECK(hybrid.protocol == lock_protocol::hybrid);
  CHECK((hybrid.home == lock_home::network && hybrid.policy == lock_policy::threshold && hybrid.threshold == 8));
  CHECK(lock("hybrid").policy == lock_policy::automatic);
  for (const char* const wrong :
       {"", "auto:", "cpu:deferred", "network:naive", "hybrid:threshold", "hybrid:threshold:0", "hybrid:threshold:x",
        "hybrid:home", "two-sided:deferred:deferred", "Auto"}) {
    CAPTURE(wrong);
    const auto [code, text] = refusal(with({{"RMA_LOCK", wrong}}));
    CHECK(code == status::bad_setting);
    CHECK(names(text, {"RMA_LOCK=", "config", "hybrid:threshold:K"}));
  }
}

TEST_CASE("an unknown value is an error that lists the valid ones", "[core][settings]") {
  const std::pair<const char*, const char*> wrong[] = {{"RMA_USER_MEMORY", "always"},   {"RMA_USER_MEMORY", ""},
                                                       {"RMA_USER_MEMORY", "auto|cma"}, {"RMA_USER_MEMORY", "aut"},
                                                       {"RMA_PROGRESS_THREAD", "on"},   {"RMA_INTRANODE", "0"},
                                                       {"RMA_ACCUMULATE", "x"}};
  for (const auto& [name, value] : wrong) {
    CAPTURE(name, value);
    const auto [code, text] = refusal(with({{name, value}}));
    CAPTURE(text);
    CHECK(code == status::bad_setting);
    CHECK(names(text, {name, "config"}));
    // Every choice that the list promises is in the message, and is accepted.
    const settings defaults(with({}));
    const Setting known = listed(defaults, name);
    CHECK(text.find(known.choices) != std::string::npos);
    for (std::size_t at = 0; at <= known.choices.size();) {
      const auto cut = std::min(known.choices.find('|', at), known.choices.size());
      CHECK(refusal(with({{name, known.choices.substr(at, cut - at)}})).first == status::done);
      at = cut + 1;
    }
  }
}

TEST_CASE("numbers and sizes", "[core][settings]") {
  CHECK(settings(with({{"RMA_SEGMENT_BYTES", "12345"}})).number(knob::segment_bytes) == 12345);
  CHECK(settings(with({{"RMA_SEGMENT_BYTES", "3K"}})).number(knob::segment_bytes) == 3 << 10);
  CHECK(settings(with({{"RMA_SEGMENT_BYTES", "3M"}})).number(knob::segment_bytes) == 3 << 20);
  CHECK(settings(with({{"RMA_SEGMENT_BYTES", "3G"}})).number(knob::segment_bytes) == std::uint64_t{3} << 30);
  CHECK(settings(with({{"RMA_SEGMENT_BYTES", "3T"}})).number(knob::segment_bytes) == std::uint64_t{3} << 40);
  for (const char* const wrong :
       {"", "-1", "1.5", "1KB", "1k", "G", " 1", "1 ", "0x10", "18446744073709551616", "17179869184G"}) {
    CAPTURE(wrong);
    CHECK(refusal(with({{"RMA_SEGMENT_BYTES", wrong}})).first == status::bad_setting);
  }
  CHECK(refusal(with({{"RMA_SPIN_US", "1K"}})).first == status::bad_setting);  // a number, not a size
}

// Break: read any number of 64 bits.
TEST_CASE("numbers beyond what they are used as", "[core][settings]") {
  struct range {
    const char* name;
    std::uint64_t least, most;
  };
  constexpr std::uint64_t int_max = 2147483647;
  const range ranges[] = {{"RMA_RANK", 0, int_max},
                          {"RMA_SIZE", 1, int_max},
                          {"RMA_LOCAL_RANKS", 0, int_max},
                          {"RMA_BOOT_TIMEOUT_MS", 1, int_max},
                          {"RMA_PEER_TIMEOUT_MS", 1000, int_max},
                          {"RMA_SPIN_US", 0, 1'000'000'000'000},
                          {"RMA_LOCK_BYPASSES", 0, UINT32_MAX},
                          {"RMA_STALL_REPORT_S", 0, 1'000'000'000},
                          {"RMA_SEGMENT_BYTES", 0, std::uint64_t{1} << 47}};
  for (const range& each : ranges) {
    CAPTURE(each.name);
    CHECK(refusal(with({{each.name, std::to_string(each.least)}})).first == status::done);
    CHECK(refusal(with({{each.name, std::to_string(each.most)}})).first == status::done);
    std::vector<std::uint64_t> wrong{each.most + 1, UINT64_MAX};
    if (each.least > 0) wrong.push_back(each.least - 1);
    for (const std::uint64_t number : wrong) {
      CAPTURE(number);
      const auto [code, text] = refusal(with({{each.name, std::to_string(number)}}));
      CAPTURE(text);
      CHECK(code == status::bad_setting);
      CHECK(names(text, {each.name, std::to_string(each.least) + " to " + std::to_string(each.most)}));
    }
  }
}

TEST_CASE("the job key is not shown", "[core][settings]") {
  Config config = with({});
  config.key = "a key that nobody should read";
  const settings s(config);
  CHECK(s.is(knob::key, "a key that nobody should read"));
  CHECK(listed(s, "RMA_KEY").value == "(set)");
  CHECK(listed(settings(with({})), "RMA_KEY").value.empty());
}

// Goal: a launcher's word counts where nobody else has said anything, and only there.
TEST_CASE("a launcher says the rank", "[core][settings]") {
  const variable space("PMIX_NAMESPACE", "job");
  const variable pmix("PMIX_RANK", "3");
  const variable pmi("PMI_RANK", "2");
  const auto found = [](const Config& config) {
    const settings s(config);
    return s.text(knob::boot) + " " + std::to_string(s.number(knob::rank));
  };
  CHECK(found(with({}, true)) == "pmix 3");
  CHECK(found(with({})) == " 0");
  CHECK(found(with({{"RMA_BOOT", "alone"}}, true)) == "alone 0");
  CHECK(found(with({{"RMA_BOOT", "pmi2"}}, true)) == "pmi2 2");
  CHECK(found(with({{"RMA_BOOT", "pmix"}, {"RMA_RANK", "1"}}, true)) == "pmix 1");
  CHECK(found(with({{"RMA_SIZE", "4"}}, true)) == " 0");
  Config simulated = with({}, true);
  simulated.boot = "local://somewhere";
  CHECK(found(simulated) == "local://somewhere 0");
}
