package exact

// Scale64 is q·2^k, rounded once.
var Scale64 = scale64
