package viz

import (
	"fmt"
	"image/color"
)

// palette tells series apart, the first seven for the colour-blind too (Okabe and Ito).
var palette = []color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{230, 159, 0, 255},
	{86, 180, 233, 255},
	{0, 0, 0, 255},
	{130, 130, 130, 255},
	{120, 60, 20, 255},
	{90, 50, 150, 255},
}

// SeriesColor returns the color of series number i, from 0. After ten they come again.
func SeriesColor(i int) color.RGBA { return palette[i%len(palette)] }

// SeriesHTML returns SeriesColor as HTML and SVG write it.
func SeriesHTML(i int) string {
	c := SeriesColor(i)
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}
