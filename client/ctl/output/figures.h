// A handful of named figures, as an answer that is no list: "log.level  info".
#pragma once

#include <string>
#include <vector>

#include "client/ctl/line/command.h"
#include "client/ctl/output/record_writer.h"

namespace tacho::ctl {

struct Figure {
  std::string group;  // May be empty; figures of a group stand together.
  std::string key;
  Cell value;  // No map.
};

// table: a line each; csv: key,value; json: an object, with an object for each group.
void PrintFigures(const Invocation& invocation, const std::vector<Figure>& figures);

}  // namespace tacho::ctl
