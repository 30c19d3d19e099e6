// WEFT_API marks what libweft.so exports; everything else is hidden.
#pragma once

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif
