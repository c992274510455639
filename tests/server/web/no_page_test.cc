// A collector that is built without its page: -DTACHO_WEB=OFF.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/web/ask_route.h"

namespace tacho::server::web {
namespace {

TEST(NoPageTest, EachAddressSaysThatThereIsNoPageAndWhatToUse) {
  EXPECT_FALSE(HasPage({}));
  for (const char* path : {"/ui", "/ui/", "/ui/index.html", "/ui/runbooks/TachoJobStalled.md"}) {
    const http::HttpResponse response = Ask(path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.body,
              "this collector was built without its page (TACHO_WEB=OFF); tachoctl shows the same "
              "in a terminal\n");
  }
}

}  // namespace
}  // namespace tacho::server::web
