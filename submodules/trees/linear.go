package trees

import "cmp"

// MaxFan bounds the children of a place in a [Linear] tree, as ADAPT bounds its
// linear tree: beyond it the root alone would hold everybody up.
const MaxFan = 32

// Linear has everybody right below the root; of more than MaxFan+1 places, the
// root's children have children too.
//
//	      0
//	┌──┬──┼──┬──┐
//	1  2  3  4  5
func Linear(v, n int) Place { return spread(v, n, MaxFan, MaxFan) }

// Linears is [Linear] with so many children below each place, 1 or more; 0: [MaxFan].
func Linears(children int) Shape { return Fans(cmp.Or(children, MaxFan)) }
