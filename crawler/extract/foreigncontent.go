package extract

// Inside svg and math other rules hold (HTML standard §13.2.6.5, "parsing
// tokens in foreign content"): elements are not those of HTML even if their
// names are, none has text for content, and CDATA sections are text. A full
// parser knows where it is from its stack of open elements. To know it without
// a tree, only the elements are remembered that lead into foreign content and
// out of it again. HTML that is left open in an integration point is not: there
// the standard ignores end tags that close the island here.

// A foreignElement is such an element, while it is open.
type foreignElement struct {
	name               string
	isSVG              bool // its namespace is SVG's, else MathML's
	isIntegrationPoint bool // an integration point: what is in it is HTML again
}

// maxForeignDepth is how deep islands nest; deeper ones are passed over.
const maxForeignDepth = 64

// inForeignContent reports whether the walk is in foreign content.
func (p *pageParser) inForeignContent() bool {
	n := len(p.foreignElements)
	return n > 0 && !p.foreignElements[n-1].isIntegrationPoint
}

// pushForeignElement remembers an island whose start tag was passed.
func (p *pageParser) pushForeignElement(i foreignElement) {
	if !p.selfClosing && len(p.foreignElements) < maxForeignDepth {
		p.foreignElements = append(p.foreignElements, i)
		p.allowCDATA = true
	}
}

// popForeignElements forgets the islands from the n-th on.
func (p *pageParser) popForeignElements(n int) {
	p.foreignElements = p.foreignElements[:n]
	p.allowCDATA = p.isXHTML || p.inForeignContent()
}

// enterForeignRoot remembers an svg or math element. In foreign content it is but one more
// element of the namespace that it stands in.
func (p *pageParser) enterForeignRoot(e elementKind) {
	svg := e == svg
	if p.inForeignContent() {
		svg = p.foreignElements[len(p.foreignElements)-1].isSVG
	}
	p.pushForeignElement(foreignElement{name: elementNames[e], isSVG: svg})
}

// trackForeignTag follows a tag of that name, passed while an island is open. It reports
// whether the element is a foreign one, if the tag is a start tag.
func (p *pageParser) trackForeignTag(name []byte, end bool) (foreign bool) {
	top := p.foreignElements[len(p.foreignElements)-1]
	var buffer [maxForeignName]byte
	if len(name) > len(buffer) {
		return !top.isIntegrationPoint
	}
	lower := buffer[:copy(buffer[:], name)]
	for i, c := range lower {
		if byteClasses[c]&classLetter != 0 {
			lower[i] = c | 0x20
		}
	}
	switch {
	case end:
		p.closeForeignElement(lower)
		return false
	case top.isIntegrationPoint:
		p.allowCDATA = p.isXHTML // until here it was text of the point itself
		return false
	case isBreakoutTag(lower):
		p.breakOutOfForeignContent()
		return false
	}
	if point := integrationPointName(lower, top.isSVG); point != "" {
		p.pushForeignElement(foreignElement{name: point, isSVG: top.isSVG, isIntegrationPoint: true})
	}
	return true
}

// closeForeignElement follows an end tag.
func (p *pageParser) closeForeignElement(name []byte) {
	if p.inForeignContent() && (string(name) == "p" || string(name) == "br") {
		p.breakOutOfForeignContent()
		return
	}
	for i := len(p.foreignElements) - 1; i >= 0; i-- {
		if p.foreignElements[i].name == string(name) {
			p.popForeignElements(i)
			return
		}
	}
}

// breakOutOfForeignContent goes back to where HTML was last.
func (p *pageParser) breakOutOfForeignContent() {
	n := len(p.foreignElements)
	for n > 0 && !p.foreignElements[n-1].isIntegrationPoint {
		n--
	}
	p.popForeignElements(n)
}

const maxForeignName = len("foreignobject")

// Elements in which HTML goes on. annotation-xml would be one more, with some
// encodings; the HTML in it breaks out of math as a rule, which comes to the same.
var (
	svgIntegrationPoints  = []string{"foreignobject", "desc", "title"}
	mathIntegrationPoints = []string{"mi", "mo", "mn", "ms", "mtext"}
)

// integrationPointName returns the name of such an element, "" for others.
func integrationPointName(name []byte, svg bool) string {
	points := mathIntegrationPoints
	if svg {
		points = svgIntegrationPoints
	}
	for _, point := range points {
		if string(name) == point {
			return point
		}
	}
	return ""
}

// isBreakoutTag reports whether a start tag of that name cannot stand in foreign
// content, but ends it: somebody forgot an end tag. The standard has font
// with some attributes, too.
func isBreakoutTag(name []byte) bool {
	switch string(name) {
	case "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed",
		"h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta",
		"nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup",
		"table", "tt", "u", "ul", "var":
		return true
	}
	return false
}
