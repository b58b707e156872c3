package yamllimit

import (
	"fmt"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// The limits of a YAML text between the lexer and the parser. The parser's memory grows with the
// square of the nesting and of the entries of a mapping, and with the path of each value; its time
// grows with the product of missing values and tokens. A project file is nested five deep at most.
// They are constants for the same reason as MaxTokens.
const (
	MaxNesting       = 32      // open lists and mappings
	MaxEntries       = 5000    // entries of a mapping
	MaxKeys          = 20_000  // keys of all mappings together
	MaxPathBytes     = 1 << 10 // bytes of the keys that lead to a value
	MaxScalarBytes   = 1 << 16 // bytes of a key or value
	maxMissingValues = 100     // keys and items without a value
	maxDocs          = 2       // documents; the reader refuses the second
)

// An openCollection is a list or mapping whose end has not been read.
type openCollection struct {
	// kind is SequenceEntryType, MappingKeyType or MappingValueType for a block, and
	// SequenceStartType or MappingStartType for a flow.
	kind          token.Type
	column        int  // column of the items or keys of a block
	entryCount    int  // of a mapping
	lastKeyBytes  int  // length of the last key
	entryHasColon bool // the current entry of a flow mapping has a colon
}

// isFlow reports whether l is in brackets or braces.
func (l *openCollection) isFlow() bool {
	return l.kind == token.SequenceStartType || l.kind == token.MappingStartType
}

// A nestingTracker follows the nesting of a text's tokens.
type nestingTracker struct {
	openCollections   []openCollection // outermost first
	keyCount          int
	missingValueCount int
	docCount          int
}

// checkTokens returns the first Violation of a text's tokens, nil if the parser can read them in
// bounded time and memory. aliasProblem is the Problem for an anchor, an alias or a tag: decorum's
// files do not need them, and a few of them can describe an endless text.
func checkTokens(tokens token.Tokens, aliasProblem string) *Violation {
	var s nestingTracker
	var before *token.Token
	for i, tk := range tokens {
		if tk.Type == token.CommentType {
			continue
		}
		// Report the first token that exceeds a limit.
		problem := ""
		switch {
		case tk.Type == token.AnchorType || tk.Type == token.AliasType || tk.Type == token.TagType:
			problem = aliasProblem
		case len(tk.Value) > MaxScalarBytes && tk.Type != token.InvalidType:
			problem = fmt.Sprintf("a value is longer than %d bytes", MaxScalarBytes)
		default:
			problem = s.addAndCheckToken(before, tk, firstNonCommentToken(tokens[i+1:]))
		}
		if problem != "" {
			return &Violation{tk.Position.Line, tk.Position.Column, problem}
		}
		before = tk
	}
	return nil
}

// firstNonCommentToken returns the first of tokens that is not a comment, nil if all are.
func firstNonCommentToken(tokens token.Tokens) *token.Token {
	for _, tk := range tokens {
		if tk.Type != token.CommentType {
			return tk
		}
	}
	return nil
}

// addAndCheckToken adds tk, which stands between the tokens before and after, and returns
// exceededLimit.
func (s *nestingTracker) addAndCheckToken(before, tk, after *token.Token) string {
	switch tk.Type {
	case token.DocumentHeaderType:
		s.docCount++
		s.openCollections = s.openCollections[:0]
	case token.SequenceStartType, token.MappingStartType:
		s.openCollections = append(s.openCollections, openCollection{kind: tk.Type})
	case token.SequenceEndType, token.MappingEndType:
		s.endFlowEntry()
		s.openCollections = s.openCollections[:max(0, len(s.openCollections)-1)]
	case token.CollectEntryType:
		s.endFlowEntry()
	case token.SequenceEntryType:
		s.beginEntry(token.SequenceEntryType, tk.Position.Column, 0)
		s.countValueIfMissing(tk, after, tk.Position.Column+1)
	case token.MappingKeyType: // "? key"
		s.beginEntry(token.MappingKeyType, tk.Position.Column, 0)
	case token.MappingValueType:
		column, keyBytes := tk.Position.Column, 0
		if before != nil && before.Position.Line == tk.Position.Line {
			column, keyBytes = before.Position.Column, len(before.Value)
		}
		s.keyCount++
		s.beginEntry(token.MappingValueType, column, keyBytes)
		s.countValueIfMissing(tk, after, column)
	}
	return s.exceededLimit()
}

// endFlowEntry ends an entry of the innermost flow, and the blocks within the entry. Outside of any
// flow it does nothing.
func (s *nestingTracker) endFlowEntry() {
	n := len(s.openCollections)
	for n > 0 && !s.openCollections[n-1].isFlow() {
		n--
	}
	if n == 0 {
		return
	}
	s.openCollections = s.openCollections[:n]
	flow := &s.openCollections[n-1]
	if flow.kind == token.MappingStartType {
		flow.entryCount++
		if !flow.entryHasColon {
			s.keyCount++
			s.missingValueCount++
		}
		flow.entryHasColon = false
	}
}

// beginEntry begins an item or entry in a column. It belongs to an open block of that column, or to
// a new block. Blocks further right end.
func (s *nestingTracker) beginEntry(kind token.Type, column, keyBytes int) {
	for n := len(s.openCollections); n > 0; n-- {
		top := &s.openCollections[n-1]
		if top.isFlow() {
			top.entryHasColon = top.entryHasColon || kind == token.MappingValueType
			break
		}
		if top.column == column && top.kind == kind {
			top.entryCount, top.lastKeyBytes = top.entryCount+1, keyBytes
			return
		}
		hasEnded := top.column > column ||
			// The items of a list may stand in the column of the key that has the list.
			top.column == column && top.kind == token.SequenceEntryType
		if !hasEnded {
			break
		}
		s.openCollections = s.openCollections[:n-1]
	}
	s.openCollections = append(s.openCollections,
		openCollection{kind: kind, column: column, entryCount: 1, lastKeyBytes: keyBytes})
}

// countValueIfMissing counts the item or entry tk if it has no value. Its value is missing if the
// token after it is neither on its line nor below it in a column where a value may stand.
func (s *nestingTracker) countValueIfMissing(tk, after *token.Token, column int) {
	switch {
	case after == nil, after.Type == token.CollectEntryType,
		after.Type == token.SequenceEndType, after.Type == token.MappingEndType:
		s.missingValueCount++
	case after.Position.Line == tk.Position.Line:
	case after.Position.Column < column,
		after.Position.Column == column && tk.Type == token.MappingValueType && after.Type != token.SequenceEntryType:
		s.missingValueCount++
	}
}

// exceededLimit describes the limit that is exceeded; empty if none is.
func (s *nestingTracker) exceededLimit() string {
	// Only the first MaxNesting collections are counted: a deeper text exceeds a limit anyway.
	pathBytes, entries := 0, 0
	for _, l := range s.openCollections[:min(len(s.openCollections), MaxNesting)] {
		pathBytes += l.lastKeyBytes
		if l.kind != token.SequenceEntryType {
			entries = max(entries, l.entryCount)
		}
	}
	switch {
	case len(s.openCollections) > MaxNesting:
		return fmt.Sprintf("lists and mappings are nested more than %d deep", MaxNesting)
	case entries > MaxEntries:
		return fmt.Sprintf("a mapping has more than %d entries", MaxEntries)
	case s.keyCount > MaxKeys:
		return fmt.Sprintf("the file has more than %d keys", MaxKeys)
	case pathBytes > MaxPathBytes:
		return fmt.Sprintf("the names that lead to this value are longer than %d bytes together", MaxPathBytes)
	case s.missingValueCount > maxMissingValues:
		return fmt.Sprintf("more than %d keys or items of lists have no value", maxMissingValues)
	case s.docCount > maxDocs:
		return "the file holds one document; here another begins"
	}
	return ""
}

// Tokenize returns the tokens of a YAML text, or a Violation if the text exceeds the limits within
// which the parser is safe. aliasProblem is the Problem for an anchor, an alias or a tag.
func Tokenize(text, aliasProblem string) (token.Tokens, *Violation) {
	if v := checkText(text); v != nil {
		return nil, v
	}
	tokens := lexer.Tokenize(text)
	return tokens, checkTokens(tokens, aliasProblem)
}
