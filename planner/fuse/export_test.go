package fuse

// Layout returns the places of tensors and buckets.
func Layout(sizes, order []int, bucket int64, size int) (buckets, tensors [][2]int, parts [][]int, err error) {
	l, err := newLayout(sizes, order, bucket, size)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range l.buckets {
		buckets = append(buckets, [2]int{s.from, s.end})
	}
	for _, t := range l.tensors {
		tensors = append(tensors, [2]int{t.from, t.end})
	}
	return buckets, tensors, l.parts, nil
}
