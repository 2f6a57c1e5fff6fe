#include "zeus/report/report.h"
