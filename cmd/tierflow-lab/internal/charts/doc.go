// Package charts draws charts of numbers as SVG: points, lines and bars, by themselves or side by side. The same
// numbers give the same bytes.
package charts
