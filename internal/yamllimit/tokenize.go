// Package yamllimit bounds what a YAML text may cost before it is parsed. The lexer and the
// parser of goccy/go-yaml take time and memory out of proportion to the length of some
// texts; those are refused. Every text that decorum reads goes through Tokenize first.
package yamllimit

import (
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Tokenize returns the tokens of a YAML text, or a Violation if the text exceeds the limits
// within which the parser is safe. aliasProblem is the Problem for an anchor, an alias or
// a tag.
func Tokenize(text, aliasProblem string) (token.Tokens, *Violation) {
	if v := checkText(text); v != nil {
		return nil, v
	}
	tokens := lexer.Tokenize(text)
	return tokens, checkTokens(tokens, aliasProblem)
}
