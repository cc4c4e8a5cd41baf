package executor

import (
	"math/rand/v2"
	"testing"
)

// A caller's operation gets whole elements, of any size, and no more bytes than asked for: a piece, or an element that is larger.
func TestNextPiece(t *testing.T) {
	for _, element := range []int64{1, 8, 12, 24, 1000, operationPiece - 1, operationPiece, 3*operationPiece + 4} {
		o := operation{element: element}
		for range 1000 {
			left := element * (1 + rand.Int64N(2+3*operationPiece/element))
			n := o.nextPiece(left)
			if n < element || n > left || n%element != 0 || n > max(operationPiece, element) || n+element <= min(left, operationPiece) {
				t.Fatalf("%d of %d bytes, by elements of %d", n, left, element)
			}
		}
	}
}
