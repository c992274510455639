// Writes a manual page to standard output, while Tachograph is built:
//
//   tacho-manual                             tachoctl.1
//   tacho-manual NAME SECTION HELP_FILE...   that of a program, from what it prints for --help
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/troff.h"

int main(int argc, char** argv) {
  if (argc == 1) {
    tacho::ctl::PrintManual(std::cout);
    return std::cout.good() ? 0 : 1;
  }
  int section = 0;
  if (argc < 4 || !absl::SimpleAtoi(argv[2], &section)) {
    std::cerr << "usage: tacho-manual [NAME SECTION HELP_FILE...]\n";
    return 2;
  }
  std::vector<std::string> helps;
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i]);
    std::stringstream text;
    text << file.rdbuf();
    if (!file.good() || text.str().empty()) {
      std::cerr << "tacho-manual: cannot read " << argv[i] << ", or it is empty\n";
      return 1;
    }
    helps.push_back(text.str());
  }
  std::cout << tacho::ctl::HelpPage(argv[1], section, helps);
  return std::cout.good() ? 0 : 1;
}
