// Package rules is the command rules with its subcommands: it checks, formats, explains and
// shows files of rules. What rules mean is said in planner/rules.
package rules
