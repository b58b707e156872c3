// Package yamllimit bounds what a YAML text may cost before it is parsed. The lexer and the parser of
// goccy/go-yaml take time and memory out of proportion to the length of some texts; those are
// refused. Every YAML text that decorum reads goes through Tokenize first, where reading begins:
// checkText bounds the work of the lexer, and checkTokens that of the parser.
//
// The package starts no goroutine and has no lock.
package yamllimit
