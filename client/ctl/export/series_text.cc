#include "client/ctl/export/series_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/text/json_writer.h"

namespace tacho::ctl {

std::string LabelsAsJson(const v1::SeriesInfo& series) {
  std::string text = "{";
  for (const v1::Label& label : series.labels()) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", JsonString(label.name()), ":",
                    JsonString(label.value()));
  }
  return text + "}";
}

std::string PrometheusEscaped(const std::string& value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::string LabelsAsMatchers(const v1::SeriesInfo& series) {
  std::string text;
  for (const v1::Label& label : series.labels()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", label.name(), "=\"",
                    PrometheusEscaped(label.value()), "\"");
  }
  return text;
}

}  // namespace tacho::ctl
