package main

import "embed"

// guide has the pages that docs shows.
//
//go:embed guide/*.md guide/*.svg
var guide embed.FS
