package elastic

// StandingOf is what a rank tells of its state as Sync begins.
func StandingOf(revision uint64, parts ...Part) []uint64 {
	return []uint64{revision, 0, shapeOf(parts)}
}
