package extract

// Different rules apply inside svg and math (HTML standard §13.2.6.5, "parsing tokens in foreign
// content"): elements are not those of HTML even if they share their names, none of them has text
// as its content, and CDATA sections are text. A full parser knows where it is from its stack of
// open elements. Without a tree, the parser remembers only the elements that lead into foreign
// content and back out of it. It does not remember HTML elements that are left open in an
// integration point; the standard would ignore some end tags there, which close the foreign element
// here.

// A foreignElement is an open element that leads into foreign content or, as an integration point,
// back to HTML.
type foreignElement struct {
	name               string
	isSVG              bool // the namespace is SVG; else MathML
	isIntegrationPoint bool // the content is HTML
}

// maxForeignDepth bounds the nesting of foreign elements; deeper ones are not tracked.
const maxForeignDepth = 64

// inForeignContent reports whether the parser is in foreign content.
func (p *pageParser) inForeignContent() bool {
	n := len(p.foreignElements)
	return n > 0 && !p.foreignElements[n-1].isIntegrationPoint
}

// pushForeignElement opens i, whose start tag was just read, unless the tag was self-closing.
func (p *pageParser) pushForeignElement(i foreignElement) {
	if !p.selfClosing && len(p.foreignElements) < maxForeignDepth {
		p.foreignElements = append(p.foreignElements, i)
		p.allowCDATA = true
	}
}

// popForeignElements closes the foreign elements from index n on.
func (p *pageParser) popForeignElements(n int) {
	p.foreignElements = p.foreignElements[:n]
	p.allowCDATA = p.isXHTML || p.inForeignContent()
}

// enterForeignRoot opens an svg or math element. Inside foreign content, it is an element of the
// surrounding namespace.
func (p *pageParser) enterForeignRoot(e elementKind) {
	svg := e == svg
	if p.inForeignContent() {
		svg = p.foreignElements[len(p.foreignElements)-1].isSVG
	}
	p.pushForeignElement(foreignElement{name: elementNames[e], isSVG: svg})
}

// trackForeignTag updates the open foreign elements for the tag called name. It must be called only
// while one is open. For a start tag, it reports whether the element is foreign.
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
		p.allowCDATA = p.isXHTML // up to here, CDATA was allowed as text of the point
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

// closeForeignElement updates the open foreign elements for an end tag.
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

// breakOutOfForeignContent closes foreign elements up to the innermost integration point, or all of
// them.
func (p *pageParser) breakOutOfForeignContent() {
	n := len(p.foreignElements)
	for n > 0 && !p.foreignElements[n-1].isIntegrationPoint {
		n--
	}
	p.popForeignElements(n)
}

// maxForeignName is the length of the longest name that affects foreign content.
const maxForeignName = len("foreignobject")

// Elements whose content is HTML. The standard adds annotation-xml with some encodings; usually the
// HTML in it breaks out of math, with the same effect.
var (
	svgIntegrationPoints  = []string{"foreignobject", "desc", "title"}
	mathIntegrationPoints = []string{"mi", "mo", "mn", "ms", "mtext"}
)

// integrationPointName returns name if it is an integration point of svg or math, else "".
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

// isBreakoutTag reports whether a start tag called name ends foreign content, in which it is
// invalid: an end tag is missing. The standard also lists font with some attributes.
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
