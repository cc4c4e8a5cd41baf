package main

const (
	chunks = 24 // of points: equal for any number of ranks
	dims   = 4
)

// uniform is number n of those from 0 to 1.
func uniform(n uint64) float64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return float64((n^n>>31)>>11) * 0x1p-53
}

// chunk makes the points of a chunk: the same on every rank, and in mpi/kmeans.c.
func (s *settings) chunk(number int) []float64 {
	first := number * s.points / chunks
	all := make([]float64, ((number+1)*s.points/chunks-first)*dims)
	for i := range all {
		spread := -2.0
		for k := range 4 {
			spread += uniform(uint64((first*dims+i)*4 + k))
		}
		all[i] = 0.7*spread + float64((i/dims*2654435761>>uint(i%dims*3))%7)
	}
	return all
}
