// Selectors and parameters come from whoever may read. Each input is read as a selector, as a time
// and as a form; what is read keeps its limits and can be used whatever it is.
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/base/check.h"
#include "server/promread/explore_request.h"
#include "server/promread/read_time.h"
#include "server/promread/selector_text.h"
#include "server/promread/series_labels.h"

namespace promread = tacho::server::promread;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const promread::LabelList labels = {{"__name__", "loss"}, {"job", "x"}};
  const auto selector = promread::ParseSelector(text);
  if (selector.ok()) {
    TACHO_CHECK(selector->size() <= promread::kMaxMatchers);
    TACHO_CHECK(!promread::MatchesAll(*selector, {}));
    promread::MatchesAll(*selector, labels);
  } else {
    TACHO_CHECK(!selector.status().message().empty());
  }
  (void)promread::ParseTimeMs(text);
  tacho::server::http::HttpRequest request;
  request.method = "POST";
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = text;
  const auto asked = promread::ReadExploreRequest(request);
  if (!asked.ok()) return 0;
  const promread::TimeSpan span = promread::TimeSpanOf(asked->everything);
  TACHO_CHECK(span.begin_ns <= span.end_ns);
  TACHO_CHECK(asked->selectors.size() <= promread::kMaxQueries);
  return 0;
}
