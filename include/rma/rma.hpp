// SPDX-License-Identifier: Apache-2.0
/// \file
/// Everything: `#include <rma/rma.hpp>`.
#pragma once

#include "rma/detail/compiler.hpp"

#include "rma/address_map.hpp"
#include "rma/aggregator.hpp"
#include "rma/atomic_forms.hpp"
#include "rma/collectives.hpp"
#include "rma/config.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"
#include "rma/hints.hpp"
#include "rma/layout.hpp"
#include "rma/messages.hpp"
#include "rma/operation.hpp"
#include "rma/ranks.hpp"
#include "rma/reductions.hpp"
#include "rma/request.hpp"
#include "rma/request_forms.hpp"
#include "rma/run_time_types.hpp"
#include "rma/runtime.hpp"
#include "rma/schedule.hpp"
#include "rma/signals.hpp"
#include "rma/synchronization.hpp"
#include "rma/team.hpp"
#include "rma/version.hpp"
#include "rma/window.hpp"
#include "rma/words.hpp"
