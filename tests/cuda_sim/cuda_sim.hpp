// What a test includes that links with the stand-in CUDA driver: the driver's API, the control
// interface, and helpers.
#pragma once

#include "interface/application.hpp"
#include "interface/control.hpp"
#include "support/owned.hpp"
#include "support/records.hpp"
