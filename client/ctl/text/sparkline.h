// A series in one line: "▁▂▃▅▇█×".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tacho::ctl {

// One mark a value, scaled between the smallest and largest finite one; a value that is NaN or
// infinite is shown as '×' ('!' without Unicode), never as a gap. More values than `width` are
// folded, several to a mark: a mark is then their average, or '×' if one of them is not finite.
std::string Sparkline(const std::vector<double>& values, size_t width, bool unicode);

}  // namespace tacho::ctl
