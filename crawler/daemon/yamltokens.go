package daemon

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The limits of a YAML text between the lexer and the parser. The parser's memory grows
// with the square of nesting and of the entries of a mapping, and with the path of each
// value; its time grows with the product of missing values and tokens. A project file is
// nested five deep at most. They are constants for the reason given at maxYAMLMarks.
const (
	maxYAMLNesting = 32      // lists and mappings that are open at a time
	maxYAMLEntries = 5000    // of a mapping
	maxYAMLKeys    = 20_000  // of all mappings together
	maxYAMLPath    = 1 << 10 // bytes of the keys that lead to a value
	maxYAMLScalar  = 1 << 16 // bytes of a key or value
	maxYAMLMissing = 100     // keys and items without a value
	maxYAMLDocs    = 2       // a reader refuses the second
)

// A yamlLevel is a list or mapping that is open.
type yamlLevel struct {
	kind    token.Type // SequenceEntry or MappingValue of a block; SequenceStart or MappingStart of a flow
	column  int        // of its items or keys, in a block
	entries int        // of a mapping
	key     int        // bytes of the key that was read last
	paired  bool       // the entry of a flow mapping has a colon
}

func (l *yamlLevel) isFlow() bool {
	return l.kind == token.SequenceStartType || l.kind == token.MappingStartType
}

// A yamlShape follows how the tokens of a text nest.
type yamlShape struct {
	open    []yamlLevel
	keys    int
	missing int
	docs    int
}

// checkYAMLTokens returns the first excess of the tokens of a text; nil if the parser
// can read them in bounded time and memory. aliases is the error text for an anchor, an
// alias or a tag: decorum's files do not need them, and a few suffice to describe an
// endless text.
func checkYAMLTokens(tokens token.Tokens, aliases string) *excess {
	var s yamlShape
	var before *token.Token
	for i, tk := range tokens {
		if tk.Type == token.CommentType {
			continue
		}
		problem := ""
		switch {
		case tk.Type == token.AnchorType || tk.Type == token.AliasType || tk.Type == token.TagType:
			problem = aliases
		case len(tk.Value) > maxYAMLScalar && tk.Type != token.InvalidType:
			problem = fmt.Sprintf("a value is longer than %d bytes", maxYAMLScalar)
		default:
			problem = s.read(before, tk, nextYAMLToken(tokens[i+1:]))
		}
		if problem != "" {
			return &excess{placeOf(tk), problem}
		}
		before = tk
	}
	return nil
}

// nextYAMLToken returns the first of tokens that is not a comment; nil if all are
// comments.
func nextYAMLToken(tokens token.Tokens) *token.Token {
	for _, tk := range tokens {
		if tk.Type != token.CommentType {
			return tk
		}
	}
	return nil
}

// read follows tk, which stands between two other tokens, and names the limit that it
// exceeds.
func (s *yamlShape) read(before, tk, after *token.Token) string {
	switch tk.Type {
	case token.DocumentHeaderType:
		s.docs++
		s.open = s.open[:0]
	case token.SequenceStartType, token.MappingStartType:
		s.open = append(s.open, yamlLevel{kind: tk.Type})
	case token.SequenceEndType, token.MappingEndType:
		s.endEntry()
		s.open = s.open[:max(0, len(s.open)-1)]
	case token.CollectEntryType:
		s.endEntry()
	case token.SequenceEntryType:
		s.enter(token.SequenceEntryType, tk.Position.Column, 0)
		s.countMissing(tk, after, tk.Position.Column+1)
	case token.MappingKeyType: // of "? key"
		s.enter(token.MappingKeyType, tk.Position.Column, 0)
	case token.MappingValueType:
		column, key := tk.Position.Column, 0
		if before != nil && before.Position.Line == tk.Position.Line {
			column, key = before.Position.Column, len(before.Value)
		}
		s.keys++
		s.enter(token.MappingValueType, column, key)
		s.countMissing(tk, after, column)
	}
	return s.excess()
}

// endEntry ends an entry of the innermost flow, and the blocks within it. It keeps a
// block outside of any flow.
func (s *yamlShape) endEntry() {
	n := len(s.open)
	for n > 0 && !s.open[n-1].isFlow() {
		n--
	}
	if n == 0 {
		return
	}
	s.open = s.open[:n]
	flow := &s.open[n-1]
	if flow.kind == token.MappingStartType {
		flow.entries++
		if !flow.paired {
			s.keys++
			s.missing++
		}
		flow.paired = false
	}
}

// enter begins an item or entry in a column: of an open block, or of a new one within
// it. It ends blocks further right.
func (s *yamlShape) enter(kind token.Type, column, key int) {
	for n := len(s.open); n > 0; n-- {
		top := &s.open[n-1]
		if top.isFlow() {
			top.paired = top.paired || kind == token.MappingValueType
			break
		}
		if top.column == column && top.kind == kind {
			top.entries, top.key = top.entries+1, key
			return
		}
		ended := top.column > column ||
			// The items of a list may stand in the column of the key that has the list.
			top.column == column && top.kind == token.SequenceEntryType
		if !ended {
			break
		}
		s.open = s.open[:n-1]
	}
	s.open = append(s.open, yamlLevel{kind: kind, column: column, entries: 1, key: key})
}

// countMissing counts an item or entry without a value. Its value is missing if the
// next token is neither on its line nor below it in a column where a value may stand.
func (s *yamlShape) countMissing(tk, after *token.Token, column int) {
	switch {
	case after == nil, after.Type == token.CollectEntryType,
		after.Type == token.SequenceEndType, after.Type == token.MappingEndType:
		s.missing++
	case after.Position.Line == tk.Position.Line:
	case after.Position.Column < column,
		after.Position.Column == column && tk.Type == token.MappingValueType && after.Type != token.SequenceEntryType:
		s.missing++
	}
}

// excess names the limit that is exceeded; empty if none is.
func (s *yamlShape) excess() string {
	path, entries := 0, 0
	for _, l := range s.open[:min(len(s.open), maxYAMLNesting)] {
		path += l.key
		if l.kind != token.SequenceEntryType {
			entries = max(entries, l.entries)
		}
	}
	switch {
	case len(s.open) > maxYAMLNesting:
		return fmt.Sprintf("lists and mappings are nested more than %d deep", maxYAMLNesting)
	case entries > maxYAMLEntries:
		return fmt.Sprintf("a mapping has more than %d entries", maxYAMLEntries)
	case s.keys > maxYAMLKeys:
		return fmt.Sprintf("the file has more than %d keys", maxYAMLKeys)
	case path > maxYAMLPath:
		return fmt.Sprintf("the names that lead to this value are longer than %d bytes together", maxYAMLPath)
	case s.missing > maxYAMLMissing:
		return fmt.Sprintf("more than %d keys or items of lists have no value", maxYAMLMissing)
	case s.docs > maxYAMLDocs:
		return "the file holds one document; here another begins"
	}
	return ""
}
