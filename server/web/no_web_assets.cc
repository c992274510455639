// In the place of the source that tacho_embed writes, if TACHO_WEB is off.
#include "server/web/web_assets.h"

namespace tacho::server::web {

absl::Span<const WebAsset> WebAssets() { return {}; }

}  // namespace tacho::server::web
