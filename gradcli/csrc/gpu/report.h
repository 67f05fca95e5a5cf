/* report.h -- how a kernel says that a value is refused: (code of the call, where, value, limit,
 * step), the first to come wins. What stands behind is the number of the step. The host reads it
 * (gradcli/engine/device/gpu/report.py). */

FN void refuse(DEV(int) report, uint code, uint where, i64 value, uint limit) {
  if (!claim(report, (int)code))
    return;
  const i64 most = 2147483647, least = -most - 1;
  report[1] = (int)where;
  report[2] = (int)(value > most ? most : (value < least ? least : value));
  report[3] = (int)limit;
  report[4] = report[5];
}
