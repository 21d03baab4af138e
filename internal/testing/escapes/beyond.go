package escapes

import (
	"fmt"
	"strings"
)

// beyond is an attack on the host that a file of testdata cannot make: it needs a terminal, a
// model's prompt, many callers, or a guest that is replaced. A test of its own shows it, and
// the matrix names the test.
type beyond struct {
	class, tries string
	test         string // package and function
	control      string // what that test shows to succeed, or "none: " and the reason
}

// beyondTheCorpus are these attacks, in the order of the matrix.
var beyondTheCorpus = []beyond{
	{
		"terminal", "writes to the clipboard, moves the cursor",
		"cmd/rlm TestATerminalGetsNoControlSequence", "--raw",
	},
	{
		"terminal", "forges a note of this program with a carriage return",
		"cmd/rlm TestATerminalGetsNoControlSequence", "--raw",
	},
	{
		"terminal", "splits a sequence over several writes",
		"cmd/rlm TestOutputIsEscapedPieceByPiece", "none: a terminal joins the writes",
	},
	{
		"terminal", "forges a note by the name of a variable",
		"cmd/rlm TestANoteIsOneLine", "none: the name is in the note",
	},
	{
		"prompts", "forges a line of the feedback in output",
		"repl/internal/turns TestCodeForgesNoLineOfTheFeedback", "feedback without fences",
	},
	{
		"prompts", "forges a line of the feedback in an exception",
		"repl/internal/turns TestCodeForgesNoLineOfTheFeedback", "feedback without fences",
	},
	{
		"prompts", "forges a line of the feedback in the name of a variable",
		"repl/internal/turns TestCodeForgesNoLineOfTheFeedback", "feedback without fences",
	},
	{
		"prompts", "forges a line of the feedback in the report of a move",
		"repl/internal/turns TestCodeForgesNoLineOfTheFeedback", "feedback without fences",
	},
	{
		"prompts", "asks a question in the beginning of an input",
		"repl/internal/inputs TestDescriptionsAreShortAndOnTheirOwnLines", "none: the prompt quotes the beginning",
	},
	{
		"prompts", "gives orders in an input",
		"repl/run TestTranscripts", "none: a script is the model",
	},
	{
		"queue", "fills the analyser's queue",
		"internal/analyser/python TestATenantFillsOnlyItsOwnLine", "none: the tenant itself is refused",
	},
	{
		"queue", "abandons analyses",
		"internal/analyser/python TestAbandonedAnalysesEnd", "none: goroutines are counted",
	},
	{
		"queue", "fills the queue for processors",
		"internal/turns TestAFullQueueRefusesItsTenantAlone", "none: the tenant itself is refused",
	},
	{
		"queue", "computes for long while others wait",
		"internal/turns TestALongSnippetLetsOthersGoFirst", "none: the order is checked",
	},
	{
		"cache", "plants an image",
		"tiers/wasm TestPlantedImage", "the file with the user's tags",
	},
	{
		"cache", "plants compiled code",
		"internal/codecache TestPlantedCode", "the file with the user's tags",
	},
	{
		"cache", "damages a file",
		"tiers/wasm TestDamagedCache", "none: every byte is covered",
	},
	{
		"cache", "offers a folder that others may write",
		"tiers/wasm TestCacheOfOthers", "none: only the modes count",
	},
	{
		"wall of wasm", "searches a recycled instance for the tenant before",
		"tiers/wasm TestARecycledInstanceHasNothingOfItsPredecessor", "the instance before it closes",
	},
	{
		"wall of wasm", "predicts the numbers of the tenant before",
		"tiers/wasm TestRecycledSandboxesDrawOtherNumbers", "deterministic mode",
	},
	{
		"wall of wasm", "fetches the answer of another sandbox",
		"tiers/wasm TestAnswersReachOnlyTheirSandbox", "the sandbox that asked",
	},
	{
		"wall of wasm", "passes addresses outside the memory",
		"tiers/wasm TestAddressesOutsideTheMemory", "addresses inside",
	},
	{
		"wall of wasm", "sends malformed requests",
		"tiers/wasm TestMalformedRequests", "well-formed requests",
	},
	{
		"wall of wasm", "damages the interpreter for the next tenant",
		"tiers/wasm TestDamageEndsWithItsSandbox", "the damaged sandbox",
	},
	{
		"server", "holds 10,000 connections that are idle or slow",
		"cmd/rlm TestTenThousandSlowClientsKeepNobodyOut", "a bound above their number",
	},
	{
		"server", "keeps others out by connections in the middle of a handshake, a head, a body",
		"internal/serve/server TestSlowConnectionsMakeRoom", "none: requests that are under way stay",
	},
	{
		"server", "takes all requests that can be under way",
		"internal/serve/server TestRequestsUnderWayAreBounded", "none: the tenant itself is refused",
	},
	{
		"server", "sends large bodies that do not end",
		"internal/serve/server TestSlowBodiesTogetherAreBounded", "none: the tenant itself is refused",
	},
	{
		"server", "sends messages of WebSockets that do not end",
		"internal/serve/server TestUnfinishedMessagesTogetherAreBounded", "none: the tenant itself is refused",
	},
	{
		"server", "sends requests over a WebSocket and reads no answer",
		"internal/serve/server TestSocketsThatReadNothingAreBounded", "none: goroutines are counted",
	},
	{
		"server", "sends compressed, huge and wrong frames",
		"internal/serve/server TestFramesOfStrangersEndTheirConnection", "none: the connection ends",
	},
	{
		"server", "asks for what is another tenant's, on every route",
		"internal/serve/server TestEveryRouteKeepsTenantsApart", "the tenant itself",
	},
	{
		"server", "shows a person a run of hostile texts",
		"internal/serve/server TestAHostileRunOfTheServerIsText", "none: the texts are shown",
	},
	{
		"shown folders", "reads a key beside a linked interpreter",
		"tiers/local TestALinkToAnInterpreterDoesNotShowItsFolder", "a plain interpreter",
	},
	{
		"shown folders", "reads the secrets of an editable install",
		"tiers/local TestAnEditableInstallIsHidden", "a plain interpreter",
	},
	{
		"shown folders", "reads secrets among packages",
		"tiers/local TestSecretsAmongPackagesHideThem", "a plain interpreter",
	},
}

// renderBeyond writes the table of the attacks beyond the corpus.
func renderBeyond(b *strings.Builder) {
	b.WriteString("\n## Attacks beyond the corpus\n\n")
	b.WriteString("| class | what it tries | test | control |\n| --- | --- | --- | --- |\n")
	for _, a := range beyondTheCorpus {
		fmt.Fprintf(b, "| %s | %s | `%s` | %s |\n", a.class, a.tries, a.test, a.control)
	}
}
