// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace rma::sim {
namespace {

double in_ns(time_ps time) noexcept { return static_cast<double>(time) / 1000.0; }
double share(time_ps part, time_ps of) noexcept {
  return of <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

struct row {
  std::uint32_t index;
  time_ps busy_ps;
};

/// Those that were used, the busiest first; equal ones in the order of their numbers.
std::vector<row> used_links(const network_model& of) {
  std::vector<row> rows;
  for (link_id link = 0; link < of.over().links(); ++link) {
    if (of.use_of(link).packets > 0) rows.push_back({link, of.use_of(link).busy_ps});
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.busy_ps > b.busy_ps; });
  return rows;
}

const engine_use& engine_at(const network_model& of, std::uint32_t index) noexcept {
  return of.use_of(static_cast<int>(index / of.engines_per_node()), index % of.engines_per_node());
}

std::vector<row> used_engines(const network_model& of) {
  std::vector<row> rows;
  const auto engines = static_cast<std::uint32_t>(of.over().nodes()) * of.engines_per_node();
  for (std::uint32_t i = 0; i < engines; ++i) {
    const engine_use& use = engine_at(of, i);
    if (use.packets_in + use.packets_out > 0) rows.push_back({i, use.busy_ps});
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.busy_ps > b.busy_ps; });
  return rows;
}

std::string engine_name(const network_model& of, std::uint32_t index) {
  const unsigned engine = index % of.engines_per_node();
  const auto senders = static_cast<unsigned>(of.constants().dma_engines);
  return fmt::format("node {} {} engine {}", index / of.engines_per_node(), engine < senders ? "DMA" : "receive",
                     engine < senders ? engine : engine - senders);
}

struct totals {
  std::uint64_t bytes_out = 0, bytes_in = 0, transfers = 0, hops = 0, wire_bytes = 0;
  time_ps link_waiting_ps = 0;
};

totals sum_up(const network_model& of) {
  totals sum;
  for (const row& one : used_engines(of)) {
    const engine_use& use = engine_at(of, one.index);
    sum.bytes_out += use.bytes_out;
    sum.bytes_in += use.bytes_in;
    sum.transfers += use.transfers;
  }
  for (const row& one : used_links(of)) {
    const link_use& use = of.use_of(one.index);
    sum.hops += use.packets;
    sum.wire_bytes += use.bytes;
    sum.link_waiting_ps += use.waiting_ps;
  }
  return sum;
}

/// Text for a JSON string; names have nothing but the two characters to escape.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

std::string readable_time(time_ps time) {
  const auto value = static_cast<double>(time);
  if (time < 1000) return fmt::format("{} ps", time);
  if (time < 1000'000) return fmt::format("{:.4g} ns", value / 1e3);
  if (time < 1000'000'000) return fmt::format("{:.4g} us", value / 1e6);
  if (time < 1000'000'000'000) return fmt::format("{:.4g} ms", value / 1e9);
  return fmt::format("{:.4g} s", value / 1e12);
}

std::string text_report(const network_model& of, unsigned busiest) {
  const totals sum = sum_up(of);
  const auto links = used_links(of);
  const auto engines = used_engines(of);
  const time_ps now_ps = of.now_ps();
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "network: {} nodes, {}, {} of virtual time\n", of.over().nodes(), of.over().text(),
                 readable_time(now_ps));
  fmt::format_to(out, "  {} transfers, {} bytes read from memory, {} bytes written by receivers\n", sum.transfers,
                 sum.bytes_out, sum.bytes_in);
  fmt::format_to(out, "  {} hops of packets, {} bytes on wires, {} of {} links used, packets waited {} for them\n",
                 sum.hops, sum.wire_bytes, links.size(), of.over().links(), readable_time(sum.link_waiting_ps));
  if (!links.empty()) {
    fmt::format_to(out, "busiest links:\n  {:<36} {:>6} {:>12} {:>14} {:>12} {:>12}\n", "", "busy", "packets", "bytes",
                   "mean wait", "longest");
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(busiest, links.size()); ++i) {
    const link_use& use = of.use_of(links[i].index);
    fmt::format_to(out, "  {:<36} {:>5.1f}% {:>12} {:>14} {:>12} {:>12}\n", of.over().name_of(links[i].index),
                   100 * share(use.busy_ps, now_ps), use.packets, use.bytes,
                   readable_time(use.waiting_ps / static_cast<time_ps>(use.packets)),
                   readable_time(use.waiting_max_ps));
  }
  if (!engines.empty()) {
    fmt::format_to(out, "busiest DMA engines:\n  {:<36} {:>6} {:>12} {:>14} {:>12} {:>12}\n", "", "busy", "bytes out",
                   "bytes in", "waited", "queue");
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(busiest, engines.size()); ++i) {
    const engine_use& use = engine_at(of, engines[i].index);
    fmt::format_to(out, "  {:<36} {:>5.1f}% {:>12} {:>14} {:>12} {:>12}\n", engine_name(of, engines[i].index),
                   100 * share(use.busy_ps, now_ps), use.bytes_out, use.bytes_in, readable_time(use.waiting_ps),
                   use.queue_max);
  }
  return text;
}

std::string json_report(const network_model& of) {
  const totals sum = sum_up(of);
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{{\n\"topology\": {}, \"nodes\": {}, \"virtual_ns\": {:.3f},\n", quoted(of.over().text()),
                 of.over().nodes(), in_ns(of.now_ps()));
  fmt::format_to(out,
                 "\"transfers\": {}, \"bytes_out\": {}, \"bytes_in\": {}, \"hops\": {}, \"wire_bytes\": {}, "
                 "\"link_waiting_ns\": {:.3f},\n\"links\": [",
                 sum.transfers, sum.bytes_out, sum.bytes_in, sum.hops, sum.wire_bytes, in_ns(sum.link_waiting_ps));
  const char* separator = "\n";
  for (const row& one : used_links(of)) {
    const link_use& use = of.use_of(one.index);
    fmt::format_to(
        out,
        "{}{{\"link\": {}, \"name\": {}, \"group\": {}, \"bytes\": {}, \"packets\": {}, \"busy_ns\": {:.3f}, "
        "\"waiting_ns\": {:.3f}, \"waiting_max_ns\": {:.3f}}}",
        separator, one.index, quoted(of.over().name_of(one.index)),
        quoted(of.over().group_name(of.over().group_of(one.index))), use.bytes, use.packets, in_ns(use.busy_ps),
        in_ns(use.waiting_ps), in_ns(use.waiting_max_ps));
    separator = ",\n";
  }
  text += "],\n\"engines\": [";
  separator = "\n";
  for (const row& one : used_engines(of)) {
    const engine_use& use = engine_at(of, one.index);
    fmt::format_to(out,
                   "{}{{\"node\": {}, \"name\": {}, \"bytes_out\": {}, \"bytes_in\": {}, \"packets_out\": {}, "
                   "\"packets_in\": {}, \"transfers\": {}, \"busy_ns\": {:.3f}, \"waiting_ns\": {:.3f}, "
                   "\"queue_max\": {}}}",
                   separator, one.index / of.engines_per_node(), quoted(engine_name(of, one.index)), use.bytes_out,
                   use.bytes_in, use.packets_out, use.packets_in, use.transfers, in_ns(use.busy_ps),
                   in_ns(use.waiting_ps), use.queue_max);
    separator = ",\n";
  }
  return text + "]\n}\n";
}

std::string trace_json(const network_model& of, const use_log& log) {
  std::string text;
  auto out = std::back_inserter(text);
  const std::uint32_t links = of.over().links();
  text +=
      "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
      "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"links\"}},\n"
      "{\"ph\": \"M\", \"pid\": 2, \"name\": \"process_name\", \"args\": {\"name\": \"DMA engines\"}}";
  std::vector<bool> named(log.rows());
  for (const use_log::span& one : log.spans()) {
    const bool is_link = one.row < links;
    const std::uint32_t number = is_link ? one.row : one.row - links;
    if (!named[one.row]) {
      named[one.row] = true;
      fmt::format_to(
          out, ",\n{{\"ph\": \"M\", \"pid\": {}, \"tid\": {}, \"name\": \"thread_name\", \"args\": {{\"name\": {}}}}}",
          is_link ? 1 : 2, number, quoted(is_link ? of.over().name_of(number) : engine_name(of, number)));
    }
    fmt::format_to(
        out,
        ",\n{{\"ph\": \"X\", \"pid\": {}, \"tid\": {}, \"name\": \"transfer {}\", \"ts\": {:.6f}, \"dur\": {:.6f}}}",
        is_link ? 1 : 2, number, one.transfer, in_ns(one.start_ps) / 1000, in_ns(one.end_ps - one.start_ps) / 1000);
  }
  fmt::format_to(out, "\n], \"otherData\": {{\"topology\": {}, \"spans_lost\": {}}}}}\n", quoted(of.over().text()),
                 log.spans_lost());
  return text;
}

}  // namespace rma::sim
