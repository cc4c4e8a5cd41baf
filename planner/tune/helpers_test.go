package tune_test

// recordedFile was tuned on goroutine ranks over emulated links, as it says.
const recordedFile = "../../testdata/tables/recorded.json"

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
