#pragma once
#include "../support/assert.h"
