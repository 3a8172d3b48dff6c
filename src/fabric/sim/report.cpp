// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
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

/// The links that were used, the busiest first; equal ones in the order of their numbers.
std::vector<row> used_links(const network_record& of) {
  std::vector<row> rows;
  for (link_id link = 0; link < of.links.size(); ++link) {
    if (of.links[link].packets > 0) rows.push_back({link, of.links[link].busy_ps});
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.busy_ps > b.busy_ps; });
  return rows;
}

std::vector<row> used_engines(const network_record& of) {
  std::vector<row> rows;
  for (std::uint32_t i = 0; i < of.engines.size(); ++i) {
    const engine_use& use = of.engines[i];
    if (use.packets_in + use.packets_out > 0) rows.push_back({i, use.busy_ps});
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.busy_ps > b.busy_ps; });
  return rows;
}

std::string engine_name(unsigned engines_per_node, unsigned dma_engines, std::uint32_t index) {
  const unsigned engine = index % engines_per_node;
  return fmt::format("node {} {} engine {}", index / engines_per_node, engine < dma_engines ? "DMA" : "receive",
                     engine < dma_engines ? engine : engine - dma_engines);
}
std::string engine_name(const network_record& of, std::uint32_t index) {
  return engine_name(of.engines_per_node, of.dma_engines, index);
}
std::string engine_name(const network_model& of, std::uint32_t index) {
  return engine_name(of.engines_per_node(), static_cast<unsigned>(of.constants().dma_engines), index);
}

struct totals {
  std::uint64_t bytes_out = 0, bytes_in = 0, transfers = 0, hops = 0, wire_bytes = 0;
  time_ps link_waiting_ps = 0;
};

totals sum_up(const network_record& of) {
  totals sum;
  for (const row& one : used_engines(of)) {
    const engine_use& use = of.engines[one.index];
    sum.bytes_out += use.bytes_out;
    sum.bytes_in += use.bytes_in;
    sum.transfers += use.transfers;
  }
  for (const row& one : used_links(of)) {
    const link_use& use = of.links[one.index];
    sum.hops += use.packets;
    sum.wire_bytes += use.bytes;
    sum.link_waiting_ps += use.waiting_ps;
  }
  return sum;
}

/// Quotes text as a JSON string.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
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

network_record record_of(const network_model& of, const use_log* log) {
  network_record record(of.over().text(), of.over().nodes());
  record.now_ps = of.now_ps();
  record.dma_engines = static_cast<unsigned>(of.constants().dma_engines);
  record.engines_per_node = of.engines_per_node();
  for (link_id link = 0; link < of.over().links(); ++link) record.links[link] = of.use_of(link);
  for (int node = 0; node < of.over().nodes(); ++node) {
    for (unsigned i = 0; i < of.engines_per_node(); ++i) record.engines.push_back(of.use_of(node, i));
  }
  if (log == nullptr) return record;
  record.width_ps = log->width_ps();
  record.buckets = log->buckets();
  for (link_id link = 0; link < of.over().links(); ++link) {
    for (unsigned i = 0; i < record.buckets; ++i) record.busy_ps.push_back(log->busy_ps(link, i));
  }
  return record;
}

std::string text_report(const network_record& of, unsigned busiest) {
  const totals sum = sum_up(of);
  const auto links = used_links(of);
  const auto engines = used_engines(of);
  const time_ps now_ps = of.now_ps;
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "network: {} nodes, {}, {} of virtual time\n", of.over.nodes(), of.over.text(),
                 readable_time(now_ps));
  fmt::format_to(out, "  {} transfers, {} bytes read from memory, {} bytes written by receivers\n", sum.transfers,
                 sum.bytes_out, sum.bytes_in);
  fmt::format_to(out, "  {} hops of packets, {} bytes on wires, {} of {} links used, packets waited {} for them\n",
                 sum.hops, sum.wire_bytes, links.size(), of.over.links(), readable_time(sum.link_waiting_ps));
  if (!links.empty()) {
    fmt::format_to(out, "busiest links:\n  {:<36} {:>6} {:>12} {:>14} {:>12} {:>12}\n", "", "busy", "packets", "bytes",
                   "mean wait", "longest");
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(busiest, links.size()); ++i) {
    const link_use& use = of.links[links[i].index];
    fmt::format_to(out, "  {:<36} {:>5.1f}% {:>12} {:>14} {:>12} {:>12}\n", of.over.name_of(links[i].index),
                   100 * share(use.busy_ps, now_ps), use.packets, use.bytes,
                   readable_time(use.waiting_ps / static_cast<time_ps>(use.packets)),
                   readable_time(use.waiting_max_ps));
  }
  if (!engines.empty()) {
    fmt::format_to(out, "busiest DMA engines:\n  {:<36} {:>6} {:>12} {:>14} {:>12} {:>12}\n", "", "busy", "bytes out",
                   "bytes in", "waited", "queue");
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(busiest, engines.size()); ++i) {
    const engine_use& use = of.engines[engines[i].index];
    fmt::format_to(out, "  {:<36} {:>5.1f}% {:>12} {:>14} {:>12} {:>12}\n", engine_name(of, engines[i].index),
                   100 * share(use.busy_ps, now_ps), use.bytes_out, use.bytes_in, readable_time(use.waiting_ps),
                   use.queue_max);
  }
  return text;
}

namespace {

/// The busy times of a link, without trailing zeros.
std::span<const time_ps> over_time(const network_record& of, link_id link) {
  const std::span<const time_ps> all(of.busy_ps.data() + std::size_t{link} * of.buckets, of.buckets);
  std::size_t used = all.size();
  while (used != 0 && all[used - 1] == 0) --used;
  return all.first(used);
}

}  // namespace

std::string json_report(const network_record& of) {
  const totals sum = sum_up(of);
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{{\n\"topology\": {}, \"nodes\": {}, \"virtual_ns\": {:.3f},\n", quoted(of.over.text()),
                 of.over.nodes(), in_ns(of.now_ps));
  fmt::format_to(out,
                 "\"transfers\": {}, \"bytes_out\": {}, \"bytes_in\": {}, \"hops\": {}, \"wire_bytes\": {}, "
                 "\"link_waiting_ns\": {:.3f},\n\"dma_engines\": {}, \"engines_per_node\": {}, \"bucket_ns\": {:.3f}, "
                 "\"buckets\": {},\n\"links\": [",
                 sum.transfers, sum.bytes_out, sum.bytes_in, sum.hops, sum.wire_bytes, in_ns(sum.link_waiting_ps),
                 of.dma_engines, of.engines_per_node, in_ns(of.width_ps), of.buckets);
  const char* separator = "\n";
  for (const row& one : used_links(of)) {
    const link_use& use = of.links[one.index];
    fmt::format_to(
        out,
        "{}{{\"link\": {}, \"name\": {}, \"group\": {}, \"bytes\": {}, \"packets\": {}, \"busy_ns\": {:.3f}, "
        "\"waiting_ns\": {:.3f}, \"waiting_max_ns\": {:.3f}, \"busy_ps_by_bucket\": [{}]}}",
        separator, one.index, quoted(of.over.name_of(one.index)),
        quoted(of.over.group_name(of.over.group_of(one.index))), use.bytes, use.packets, in_ns(use.busy_ps),
        in_ns(use.waiting_ps), in_ns(use.waiting_max_ps), fmt::join(over_time(of, one.index), ", "));
    separator = ",\n";
  }
  text += "],\n\"engines\": [";
  separator = "\n";
  for (const row& one : used_engines(of)) {
    const engine_use& use = of.engines[one.index];
    fmt::format_to(
        out,
        "{}{{\"engine\": {}, \"node\": {}, \"name\": {}, \"bytes_out\": {}, \"bytes_in\": {}, \"packets_out\": {}, "
        "\"packets_in\": {}, \"transfers\": {}, \"busy_ns\": {:.3f}, \"waiting_ns\": {:.3f}, "
        "\"queue_max\": {}}}",
        separator, one.index, one.index / of.engines_per_node, quoted(engine_name(of, one.index)), use.bytes_out,
        use.bytes_in, use.packets_out, use.packets_in, use.transfers, in_ns(use.busy_ps), in_ns(use.waiting_ps),
        use.queue_max);
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
