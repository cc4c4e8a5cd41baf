// Package rules is the command rules with its subcommands: it checks, formats, explains and shows
// files of rules. Their meaning is in planner/rules.
package rules
