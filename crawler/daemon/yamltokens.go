package daemon

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The limits of a YAML text between the lexer and the parser. The parser's memory grows
// with the square of nesting and of the entries of a mapping, and with the path of each
// value; its time grows with the product of missing values and tokens. A project file is
// nested five deep at most. They are constants for the reason given at maxYAMLTokens.
const (
	maxYAMLNesting       = 32      // lists and mappings that are open at a time
	maxYAMLEntries       = 5000    // of a mapping
	maxYAMLKeys          = 20_000  // of all mappings together
	maxYAMLPathBytes     = 1 << 10 // bytes of the keys that lead to a value
	maxYAMLScalarBytes   = 1 << 16 // bytes of a key or value
	maxYAMLMissingValues = 100     // keys and items without a value
	maxYAMLDocs          = 2       // a reader refuses the second
)

// An openYAMLCollection is a list or mapping that is open.
type openYAMLCollection struct {
	kind          token.Type // SequenceEntry or MappingValue of a block; SequenceStart or MappingStart of a flow
	column        int        // of its items or keys, in a block
	entryCount    int        // of a mapping
	lastKeyBytes  int        // bytes of the key that was read last
	entryHasColon bool       // the entry of a flow mapping has a colon
}

func (l *openYAMLCollection) isFlow() bool {
	return l.kind == token.SequenceStartType || l.kind == token.MappingStartType
}

// A yamlNestingTracker follows how the tokens of a text nest.
type yamlNestingTracker struct {
	openCollections   []openYAMLCollection
	keyCount          int
	missingValueCount int
	docCount          int
}

// checkYAMLTokenLimits returns the first excess of the tokens of a text; nil if the parser
// can read them in bounded time and memory. aliases is the error text for an anchor, an
// alias or a tag: decorum's files do not need them, and a few suffice to describe an
// endless text.
func checkYAMLTokenLimits(tokens token.Tokens, aliasProblem string) *exceededYAMLLimit {
	var s yamlNestingTracker
	var before *token.Token
	for i, tk := range tokens {
		if tk.Type == token.CommentType {
			continue
		}
		problem := ""
		switch {
		case tk.Type == token.AnchorType || tk.Type == token.AliasType || tk.Type == token.TagType:
			problem = aliasProblem
		case len(tk.Value) > maxYAMLScalarBytes && tk.Type != token.InvalidType:
			problem = fmt.Sprintf("a value is longer than %d bytes", maxYAMLScalarBytes)
		default:
			problem = s.addAndCheckToken(before, tk, firstNonCommentToken(tokens[i+1:]))
		}
		if problem != "" {
			return &exceededYAMLLimit{yamlTokenPosition(tk), problem}
		}
		before = tk
	}
	return nil
}

// firstNonCommentToken returns the first of tokens that is not a comment; nil if all are
// comments.
func firstNonCommentToken(tokens token.Tokens) *token.Token {
	for _, tk := range tokens {
		if tk.Type != token.CommentType {
			return tk
		}
	}
	return nil
}

// addAndCheckToken follows tk, which stands between two other tokens, and names the limit that it
// exceeds.
func (s *yamlNestingTracker) addAndCheckToken(before, tk, after *token.Token) string {
	switch tk.Type {
	case token.DocumentHeaderType:
		s.docCount++
		s.openCollections = s.openCollections[:0]
	case token.SequenceStartType, token.MappingStartType:
		s.openCollections = append(s.openCollections, openYAMLCollection{kind: tk.Type})
	case token.SequenceEndType, token.MappingEndType:
		s.endEntry()
		s.openCollections = s.openCollections[:max(0, len(s.openCollections)-1)]
	case token.CollectEntryType:
		s.endEntry()
	case token.SequenceEntryType:
		s.beginEntry(token.SequenceEntryType, tk.Position.Column, 0)
		s.countIfValueMissing(tk, after, tk.Position.Column+1)
	case token.MappingKeyType: // of "? key"
		s.beginEntry(token.MappingKeyType, tk.Position.Column, 0)
	case token.MappingValueType:
		column, keyBytes := tk.Position.Column, 0
		if before != nil && before.Position.Line == tk.Position.Line {
			column, keyBytes = before.Position.Column, len(before.Value)
		}
		s.keyCount++
		s.beginEntry(token.MappingValueType, column, keyBytes)
		s.countIfValueMissing(tk, after, column)
	}
	return s.exceededLimit()
}

// endEntry ends an entry of the innermost flow, and the blocks within it. It keeps a
// block outside of any flow.
func (s *yamlNestingTracker) endEntry() {
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

// beginEntry begins an item or entry in a column: of an open block, or of a new one within
// it. It ends blocks further right.
func (s *yamlNestingTracker) beginEntry(kind token.Type, column, keyBytes int) {
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
	s.openCollections = append(s.openCollections, openYAMLCollection{kind: kind, column: column, entryCount: 1, lastKeyBytes: keyBytes})
}

// countIfValueMissing counts an item or entry without a value. Its value is missing if the
// next token is neither on its line nor below it in a column where a value may stand.
func (s *yamlNestingTracker) countIfValueMissing(tk, after *token.Token, column int) {
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

// exceededLimit names the limit that is exceeded; empty if none is.
func (s *yamlNestingTracker) exceededLimit() string {
	pathBytes, entries := 0, 0
	for _, l := range s.openCollections[:min(len(s.openCollections), maxYAMLNesting)] {
		pathBytes += l.lastKeyBytes
		if l.kind != token.SequenceEntryType {
			entries = max(entries, l.entryCount)
		}
	}
	switch {
	case len(s.openCollections) > maxYAMLNesting:
		return fmt.Sprintf("lists and mappings are nested more than %d deep", maxYAMLNesting)
	case entries > maxYAMLEntries:
		return fmt.Sprintf("a mapping has more than %d entries", maxYAMLEntries)
	case s.keyCount > maxYAMLKeys:
		return fmt.Sprintf("the file has more than %d keys", maxYAMLKeys)
	case pathBytes > maxYAMLPathBytes:
		return fmt.Sprintf("the names that lead to this value are longer than %d bytes together", maxYAMLPathBytes)
	case s.missingValueCount > maxYAMLMissingValues:
		return fmt.Sprintf("more than %d keys or items of lists have no value", maxYAMLMissingValues)
	case s.docCount > maxYAMLDocs:
		return "the file holds one document; here another begins"
	}
	return ""
}
