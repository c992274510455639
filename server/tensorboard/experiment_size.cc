#include "server/tensorboard/experiment_size.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "re2/re2.h"

namespace tacho::server::tb {

std::string SizeInWords(const ExperimentSize& size) {
  std::string words = absl::StrCat(size.jobs, " jobs with ", size.runs, " runs.");
  if (size.left_out == 0) return words;
  absl::StrAppend(
      &words, " ", size.left_out,
      " more jobs, silent for longer, are left out: open /experiment/JOB/, or a pattern "
      "of names as in /experiment/resnet.*/");
  return words;
}

std::optional<ExperimentSize> SizeFromWords(absl::string_view words) {
  static const RE2* const kPattern =
      new RE2(R"((\d+) jobs with (\d+) runs\.(?: (\d+) more jobs, silent .*)?)");
  ExperimentSize size;
  std::string left_out;
  if (!RE2::FullMatch(re2::StringPiece(words.data(), words.size()), *kPattern, &size.jobs,
                      &size.runs, &left_out)) {
    return std::nullopt;
  }
  if (!left_out.empty() && !absl::SimpleAtoi(left_out, &size.left_out)) return std::nullopt;
  return size;
}

}  // namespace tacho::server::tb
