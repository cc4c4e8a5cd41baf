package kernel

// inAssembly is how many of n elements assembly takes.
func inAssembly(n int) int {
	if !hasAVX2 || detects {
		return 0
	}
	return n &^ (lanes - 1)
}
