#pragma once

int _access(const char* name, int mode);
