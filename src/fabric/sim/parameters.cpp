// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "rma/error.hpp"

namespace rma::sim {
namespace {

/// The member that a value sets: one of the three pointers is set, and determines the unit.
struct member {
  constexpr member(double parameters::*at) : speed(at) {}
  constexpr member(time_ps parameters::*at) : time(at) {}
  constexpr member(std::uint64_t parameters::*at) : number(at) {}
  double parameters::*speed = nullptr;
  time_ps parameters::*time = nullptr;
  std::uint64_t parameters::*number = nullptr;
};

struct description {
  std::string_view name;
  std::string_view unit;
  member at;
  double least;
  double most;
  std::string_view meaning;
  bool may_be_missing = false;  ///< its default is 0
};

constexpr double ns_most = 1e9;
constexpr double gbs_least = 0.001;
constexpr double gbs_most = 1e6;

using p = parameters;
constexpr description descriptions[] = {
    description{"link_bandwidth", "GB/s", &p::link_bandwidth_gbs, gbs_least, gbs_most,
                "one direction of a link, bytes on the wire"},
    description{"switch_throughput", "GB/s", &p::switch_throughput_gbs, gbs_least, gbs_most,
                "of a router's output port; limits the link behind it"},
    description{"cable_latency", "ns", &p::cable_latency_ps, 0, ns_most, "of every link"},
    description{"routing_time", "ns", &p::routing_time_ps, 0, ns_most, "of a packet's head at a router"},
    description{"vc_allocation_time", "ns", &p::vc_allocation_time_ps, 0, ns_most, "the same"},
    description{"switch_allocation_time", "ns", &p::switch_allocation_time_ps, 0, ns_most, "the same"},
    description{"switch_latency", "ns", &p::switch_latency_ps, 0, ns_most,
                "through the switch, beside the three above"},
    description{"store_and_forward", "count", &p::store_and_forward, 0, 1,
                "1: a router sends on what it has whole; 0: virtual cut-through"},
    description{"packet_payload", "bytes", &p::packet_payload_bytes, 1, 65536, "at most, of a packet"},
    description{"packet_header", "bytes", &p::packet_header_bytes, 0, 4096, "of a data packet, on the wire only"},
    description{"control_packet", "bytes", &p::control_packet_bytes, 1, 65536,
                "on the wire: an acknowledgement, a transfer without data"},
    description{"port_buffers", "count", &p::port_buffers, 0, 65535,
                "packets that the far end of a link can hold; 0: any number"},
    description{"dma_speed", "GB/s", &p::dma_speed_gbs, gbs_least, gbs_most, "of one DMA engine of an adapter"},
    description{"dma_write_speed", "GB/s", &p::dma_write_speed_gbs, 0, gbs_most, "the same into memory; 0: the same",
                true},
    description{"dma_engines", "count", &p::dma_engines, 1, 16, "that read memory; transfers to one node share one"},
    description{"dma_receive_engines", "count", &p::dma_receive_engines, 0, 16,
                "that write memory; 0: the engines above do it too"},
    description{"pcie_latency", "ns", &p::pcie_latency_ps, 0, ns_most,
                "one crossing between processor or memory and adapter"},
    description{"inline_payload", "bytes", &p::inline_payload_bytes, 0, 65536,
                "transfers up to this come with the post and need no read across the bus"},
    description{"nic_packet_time", "ns", &p::nic_packet_time_ps, 0, ns_most,
                "an adapter's engine is occupied so long by a packet, at least"},
    description{"nic_message_time", "ns", &p::nic_message_time_ps, 0, ns_most,
                "before a posted transfer's first packet; transfers overlap in it"},
    description{"nic_message_gap", "ns", &p::nic_message_gap_ps, 0, ns_most,
                "an adapter's engine is occupied so long by a work request, at least", true},
    description{"nic_list_entry_time", "ns", &p::nic_list_entry_time_ps, 0, ns_most,
                "an adapter's engine is occupied so long by each entry of a gather or scatter list, at least", true},
    description{"atomic_service_time", "ns", &p::atomic_service_time_ps, 0, ns_most,
                "of an adapter's atomic unit, which serves one request at a time"},
    description{"library_overhead", "ns", &p::library_overhead_ps, 0, ns_most,
                "T_pp: of the library, on either side of a put"},
    description{"post_time", "ns", &p::post_time_ps, 0, ns_most, "of the processor, per posted operation"},
    description{"list_entry_time", "ns", &p::list_entry_time_ps, 0, ns_most,
                "of the processor, per further entry of a list that is posted", true},
    description{"completion_time", "ns", &p::completion_time_ps, 0, ns_most,
                "of the processor, per completion that it takes", true},
    description{"registration_page_time", "ns", &p::registration_page_time_ps, 0, ns_most,
                "of the processor, per page of 4096 bytes that is registered", true},
    description{"poll_time", "ns", &p::poll_time_ps, 0, ns_most, "of the processor, per look for completions"},
    description{"handler_time", "ns", &p::handler_time_ps, 0, ns_most, "of the processor, per message handled"},
    description{"spin_time", "ns", &p::spin_time_ps, 0, ns_most,
                "a waiting rank polls so long, and then sleeps (0: it sleeps at once)", true},
    description{"wake_time", "ns", &p::wake_time_ps, 0, ns_most, "until a sleeping rank runs"},
    description{"copy_latency", "ns", &p::copy_latency_ps, 0, ns_most, "of a copy within a node, whatever its size"},
    description{"copy_bandwidth", "GB/s", &p::copy_bandwidth_gbs, gbs_least, gbs_most, "of one rank's copy"},
    description{"memory_bandwidth", "GB/s", &p::memory_bandwidth_gbs, gbs_least, gbs_most,
                "of a node, shared by its ranks' copies: a byte copied is one read and one written"},
};

[[noreturn]] void reject(const std::string& message) { throw Error(status::bad_setting, message); }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t best = std::min({row[j], row[j + 1], diagonal - (a[i] == b[j] ? 1 : 0)}) + 1;
      diagonal = std::exchange(row[j + 1], best);
    }
  }
  return row.back();
}

/// Returns "; did you mean x?" or the list of valid names.
template <class Range, class Name>
std::string advice(std::string_view wrong, const Range& all, Name name_of) {
  std::string list;
  std::string_view nearest;
  std::size_t least = 4;
  for (const auto& one : all) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", name_of(one));
    if (const auto d = distance(wrong, name_of(one)); d < least) {
      least = d;
      nearest = name_of(one);
    }
  }
  return nearest.empty() ? fmt::format("; valid are: {}", list) : fmt::format("; did you mean {}?", nearest);
}

class parser {
 public:
  parser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  parameters run() {
    while (!text_.empty()) {
      ++line_;
      const auto end = std::min(text_.find('\n'), text_.size());
      const auto line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (const auto setting = trimmed(line.substr(0, std::min(line.find('#'), line.size()))); !setting.empty()) {
        read(setting);
      }
    }
    for (std::size_t i = 0; i < std::size(descriptions); ++i) {
      if (!set_[i] && !based_ && !descriptions[i].may_be_missing) {
        reject(fmt::format("{}: {} is missing ({} in {}); `base = <preset>` as the first line supplies what is not set",
                           origin_, descriptions[i].name, descriptions[i].meaning, descriptions[i].unit));
      }
    }
    return read_;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const { reject(fmt::format("{}:{}: {}", origin_, line_, what)); }

  void read(std::string_view setting) {
    const auto equals = setting.find('=');
    if (equals == std::string_view::npos) {
      wrong(fmt::format("'{}' is not of the form `name = value unit  # source`", setting));
    }
    const auto name = trimmed(setting.substr(0, equals));
    const auto value = trimmed(setting.substr(equals + 1));
    if (name == "base") return start_from(value);
    const auto* found =
        std::find_if(std::begin(descriptions), std::end(descriptions), [&](auto& d) { return d.name == name; });
    if (found == std::end(descriptions)) {
      wrong(fmt::format("unknown parameter '{}'", name) +
            advice(name, descriptions, [](const auto& d) { return d.name; }));
    }
    bool& was_set = set_[static_cast<std::size_t>(found - std::begin(descriptions))];
    if (std::exchange(was_set, true)) wrong(fmt::format("{} is set twice", name));
    store(*found, value);
  }

  void start_from(std::string_view name) {
    if (based_ || std::find(set_.begin(), set_.end(), true) != set_.end()) {
      wrong("base comes first, and once");
    }
    const auto found = std::find_if(presets().begin(), presets().end(), [&](auto& one) { return one.name == name; });
    if (found == presets().end()) {
      wrong(fmt::format("unknown preset '{}'", name) +
            advice(name, presets(), [](const auto& one) { return one.name; }));
    }
    read_ = parse_parameters(found->text, found->name);
    based_ = true;
  }

  void store(const description& what, std::string_view text) {
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) {
      wrong(fmt::format("{} = '{}' is not a number and a unit, as in `{} = 1 {}`", what.name, text, what.name,
                        what.unit));
    }
    const auto unit = trimmed(std::string_view(rest, static_cast<std::size_t>(text.data() + text.size() - rest)));
    if (unit.empty()) wrong(fmt::format("{} has no unit, it is in {}", what.name, what.unit));
    if (unit != what.unit) wrong(fmt::format("{} is in {}, not in '{}'", what.name, what.unit, unit));
    if (value < what.least || value > what.most) {
      wrong(fmt::format("{} = {} {} is out of range, it goes from {} to {}", what.name, value, unit, what.least,
                        what.most));
    }
    if (what.at.number != nullptr && value != std::floor(value)) {
      wrong(fmt::format("{} = {} {} is not a whole number", what.name, value, unit));
    }
    if (what.at.speed != nullptr) read_.*what.at.speed = value;
    if (what.at.time != nullptr) read_.*what.at.time = static_cast<time_ps>(value * 1000.0 + 0.5);
    if (what.at.number != nullptr) read_.*what.at.number = static_cast<std::uint64_t>(value);
  }

  std::string_view text_;
  std::string_view origin_;
  parameters read_{};
  std::array<bool, std::size(descriptions)> set_{};
  bool based_ = false;
  int line_ = 0;
};

}  // namespace

parameters parse_parameters(std::string_view text, std::string_view origin) { return parser(text, origin).run(); }

parameters load_parameters(std::string_view preset_or_path) {
  for (const preset& one : presets()) {
    if (one.name == preset_or_path) return parse_parameters(one.text, one.name);
  }
  if (preset_or_path.find_first_of("/.") == std::string_view::npos) {
    reject(fmt::format("no preset '{}' of a simulated machine", preset_or_path) +
           advice(preset_or_path, presets(), [](const auto& one) { return one.name; }) +
           " (a file's name has a / or a . in it)");
  }
  const std::string path(preset_or_path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    reject(fmt::format("{}: is a directory; the parameters of a machine are a text file", path));
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) reject(fmt::format("{}: cannot be read, or is empty (parameters of a machine)", path));
  return parse_parameters(text, path);
}

std::string to_text(const parameters& of) {
  std::string text;
  for (const description& what : descriptions) {
    const double value = what.at.speed != nullptr  ? of.*what.at.speed
                         : what.at.time != nullptr ? static_cast<double>(of.*what.at.time) / 1000.0
                                                   : static_cast<double>(of.*what.at.number);
    text += fmt::format("{} = {} {}  # {}\n", what.name, value, what.unit, what.meaning);
  }
  return text;
}

}  // namespace rma::sim
