package collyfetch

// NewTransport is for tests that put certificates into it.
var NewTransport = newTransport
