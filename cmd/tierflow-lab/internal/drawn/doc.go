// Package drawn judges the planner's choices on machines that nobody has seen: it draws machines,
// topologies, collectives and sizes from a seed, and simulates the chosen plan, the built-in
// rule's and the whole catalogue.
//
// Prices must not be mended on its worst cells without drawing new ones.
package drawn
