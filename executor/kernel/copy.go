package kernel

// CopyPast copies src to dst past the caches, so that lines of dst in another processor's
// cache needn't come from there first. Their lengths are equal, and they don't overlap. It
// reports whether this CPU could; else nothing was copied.
func CopyPast(dst, src []byte) bool { return len(src) > 0 && copyPast(dst, src[:len(dst):len(src)]) }
