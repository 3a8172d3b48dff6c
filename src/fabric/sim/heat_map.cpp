// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

#include "fabric/sim/report.hpp"

namespace rma::sim {
namespace {

constexpr int picture_left = 150;  // position of the cells in pixels
constexpr int picture_top = 70;
constexpr int cells_width = 900;
constexpr int group_gap = 14;
constexpr unsigned rows_per_group_max = 96;
constexpr int shades = 20;  // steps of 5 %

/// A line of the picture: some links of one group.
struct line {
  link_id first;
  link_id count;
  int top;
  int height;
};
struct group_block {
  std::string name;
  int top;
  int height;
  link_id links;
  link_id links_per_line;
  std::vector<line> lines;
};

/// A color between nearly white, orange and dark red.
std::string shade_color(int shade) {
  struct rgb {
    double r, g, b;
  };
  constexpr std::array<rgb, 4> stops{rgb{255, 247, 230}, rgb{253, 187, 99}, rgb{215, 60, 31}, rgb{95, 0, 10}};
  const double at = static_cast<double>(shade) / shades * (stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  const double part = at - static_cast<double>(low);
  const auto mix = [part](double a, double b) { return static_cast<int>(a + (b - a) * part + 0.5); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(stops[low].r, stops[low + 1].r), mix(stops[low].g, stops[low + 1].g),
                     mix(stops[low].b, stops[low + 1].b));
}

std::vector<group_block> lay_out(const topology& over) {
  std::vector<group_block> groups;
  int top = picture_top;
  for (link_id link = 0; link < over.links();) {
    const unsigned group = over.group_of(link);
    link_id end = link;
    while (end < over.links() && over.group_of(end) == group) ++end;
    const link_id links = end - link;
    const link_id per_line = (links + rows_per_group_max - 1) / rows_per_group_max;
    group_block block{over.group_name(group), top, 0, links, per_line, {}};
    const int height = links > 48 ? 2 : links > 16 ? 4 : 9;
    for (; link < end; link += std::min(per_line, end - link)) {
      block.lines.push_back({link, std::min(per_line, end - link), top, height});
      top += height;
    }
    block.height = top - block.top;
    // The label of a group has two lines of text.
    top = std::max(top, block.top + 24) + group_gap;
    groups.push_back(std::move(block));
  }
  return groups;
}

class painter {
 public:
  explicit painter(const network_record& of) : of_(of), groups_(lay_out(of.over)) {
    const time_ps now_ps = std::max<time_ps>(of.now_ps, 1);
    const time_ps shown = std::clamp<time_ps>((now_ps + of.width_ps - 1) / of.width_ps, 1, of.buckets);
    buckets_ = static_cast<unsigned>(shown);
    bottom_ = groups_.back().top + std::max(groups_.back().height, 24);
  }

  std::string paint() {
    const int width = picture_left + cells_width + 30;
    emit(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#fff\"/>\n",
        width, bottom_ + 60);
    emit("<text x=\"{}\" y=\"24\" font-size=\"16\">Use of links over virtual time: {}, {} nodes</text>\n", 12,
         of_.over.text(), of_.over.nodes());
    legend();
    for (const group_block& one : groups_) group(one);
    axis();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  template <class... T>
  void emit(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
  }
  [[nodiscard]] double column(unsigned bucket) const {
    return picture_left + static_cast<double>(bucket) * cells_width / buckets_;
  }

  void legend() {
    emit("<text x=\"12\" y=\"50\">busy, share of time (one column is {}):</text>\n", readable_time(of_.width_ps));
    constexpr int left = 320;
    for (int shade = 0; shade <= shades; ++shade) {
      emit("<rect x=\"{}\" y=\"40\" width=\"10\" height=\"12\" fill=\"{}\"/>\n", left + 10 * shade, shade_color(shade));
    }
    emit("<text x=\"{}\" y=\"50\" text-anchor=\"end\">0 %</text><text x=\"{}\" y=\"50\">100 %</text>\n", left - 6,
         left + 10 * (shades + 1) + 6);
  }

  void group(const group_block& one) {
    emit(
        "<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2}</text>\n"
        "<text x=\"{0}\" y=\"{3}\" text-anchor=\"end\" fill=\"#777\" font-size=\"9\">{4} links{5}</text>\n",
        picture_left - 8, one.top + 10, one.name, one.top + 21, one.links,
        one.links_per_line > 1 ? fmt::format(", {} a row", one.links_per_line) : "");
    emit("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", picture_left, one.top, cells_width,
         one.height, shade_color(0));
    for (const line& row : one.lines) cells(row);
    emit("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#bbb\" stroke-width=\"0.5\"/>\n",
         picture_left, one.top, cells_width, one.height);
  }

  [[nodiscard]] int shade_of(const line& row, unsigned bucket) const {
    time_ps busy_ps = 0;
    for (link_id link = row.first; link < row.first + row.count; ++link)
      busy_ps += of_.busy_ps[std::size_t{link} * of_.buckets + bucket];
    const double share =
        static_cast<double>(busy_ps) / (static_cast<double>(of_.width_ps) * static_cast<double>(row.count));
    return busy_ps == 0 ? 0 : std::clamp(static_cast<int>(share * shades + 0.5), 1, shades);
  }

  void cells(const line& row) {
    // Each run of one shade is a stroke, and all of a shade are one path: a tenth of the size of rectangles.
    std::array<std::string, shades + 1> strokes;
    for (unsigned bucket = 0; bucket < buckets_;) {
      const int shade = shade_of(row, bucket);
      const unsigned first = bucket;
      while (bucket < buckets_ && shade_of(row, bucket) == shade) ++bucket;
      fmt::format_to(std::back_inserter(strokes[static_cast<std::size_t>(shade)]), "M{:.1f} {:g}h{:.1f}", column(first),
                     row.top + row.height / 2.0, column(bucket) - column(first));
    }
    std::string inside;
    for (int shade = 1; shade <= shades; ++shade) {
      const std::string& path = strokes[static_cast<std::size_t>(shade)];
      if (path.empty()) continue;
      fmt::format_to(std::back_inserter(inside), "<path d=\"{}\" stroke=\"{}\"/>", path, shade_color(shade));
    }
    if (inside.empty()) return;
    // Browsers show the title under the pointer. A name contains a ">".
    std::string name = of_.over.name_of(row.first);
    if (const auto arrow = name.find("->"); arrow != std::string::npos) name.replace(arrow, 2, "to");
    emit("<g stroke-width=\"{}\"><title>{}{}</title>{}</g>\n", row.height, name,
         row.count > 1 ? fmt::format(" and {} more", row.count - 1) : std::string(), inside);
  }

  void axis() {
    const time_ps end_ps = of_.width_ps * buckets_;
    // The axis has five to twelve steps, which are 1, 2 or 5 times a power of ten.
    time_ps step_ps = 1;
    for (int i = 0; end_ps / step_ps > 12; ++i) step_ps = i % 3 == 1 ? step_ps / 2 * 5 : step_ps * 2;
    for (time_ps at_ps = 0; at_ps <= end_ps; at_ps += step_ps) {
      emit(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#777\"/>"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
          picture_left + static_cast<double>(cells_width) * static_cast<double>(at_ps) / static_cast<double>(end_ps),
          bottom_ + 4, bottom_ + 9, bottom_ + 22, at_ps == 0 ? "0" : readable_time(at_ps));
    }
    emit("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">virtual time</text>\n", picture_left + cells_width / 2,
         bottom_ + 42);
  }

  const network_record& of_;
  std::vector<group_block> groups_;
  unsigned buckets_ = 1;
  int bottom_ = 0;
  std::string text_{};
};

}  // namespace

std::string heat_map_svg(const network_record& of) { return painter(of).paint(); }

}  // namespace rma::sim
