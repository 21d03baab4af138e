package escapes

import (
	"fmt"
	"strings"
)

// beyond is an attack on the host that cannot be a file of testdata, because it needs a terminal, a
// model's prompt, many callers, or a modified guest. A separate test demonstrates it, and the
// matrix names the test.
type beyond struct {
	class, tries string
	test         string // package and function
	control      string // where the test shows that the attack succeeds, or "none: " and the reason
}

// beyondTheCorpus lists these attacks, in the order of the matrix.
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
		"cmd/rlm/internal/cli TestOutputIsEscapedPieceByPiece", "none: a terminal joins the writes",
	},
	{
		"terminal", "forges a note by the name of a variable",
		"cmd/rlm/internal/cli TestANoteIsOneLine", "none: the name is in the note",
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
		"internal/plan/analyser/python TestATenantFillsOnlyItsOwnLine", "none: the tenant itself is refused",
	},
	{
		"queue", "abandons analyses",
		"internal/plan/analyser/python TestAbandonedAnalysesEnd", "none: goroutines are counted",
	},
	{
		"queue", "fills the queue for processors",
		"internal/snippet/slots TestAFullQueueRefusesItsTenantAlone", "none: the tenant itself is refused",
	},
	{
		"queue", "computes for long while others wait",
		"internal/snippet/slots TestALongSnippetLetsOthersGoFirst", "none: the order is checked",
	},
	{
		"cache", "plants an image",
		"tiers/wasm TestPlantedImage", "the file with the user's tags",
	},
	{
		"cache", "plants compiled code",
		"internal/machine/codecache TestPlantedCode", "the file with the user's tags",
	},
	{
		"cache", "damages a file",
		"tiers/wasm TestDamagedCache", "none: every byte is covered",
	},
	{
		"cache", "offers a folder that others may write",
		"tiers/wasm TestForeignCachesAreRefused", "none: only the modes count",
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
		"server TestSlowConnectionsMakeRoom", "none: requests that are under way stay",
	},
	{
		"server", "takes all requests that can be under way",
		"server TestRequestsUnderWayAreBounded", "none: the tenant itself is refused",
	},
	{
		"server", "sends large bodies that do not end",
		"server TestSlowBodiesTogetherAreBounded", "none: the tenant itself is refused",
	},
	{
		"server", "sends messages of WebSockets that do not end",
		"server TestUnfinishedMessagesTogetherAreBounded", "none: the tenant itself is refused",
	},
	{
		"server", "sends requests over a WebSocket and reads no answer",
		"server TestSocketsThatReadNothingAreBounded", "none: goroutines are counted",
	},
	{
		"server", "sends compressed, huge and wrong frames",
		"server TestFramesOfStrangersEndTheirConnection", "none: the connection ends",
	},
	{
		"server", "asks for what is another tenant's, on every route",
		"server TestEveryRouteKeepsTenantsApart", "the tenant itself",
	},
	{
		"server", "shows a person a run of hostile texts",
		"scripts/checks/browser TestAHostileRunOfTheServerIsText", "none: the texts are shown",
	},
	{
		"server", "sends bodies whose values take gigabytes once decoded, on every route",
		"server TestHeavyBodiesAreRefusedByEveryRoute", "none: allocated bytes are counted",
	},
	{
		"server", "announces a body of 10^18 bytes",
		"server TestALengthThatIsTooMuchIsRefusedAtOnce", "none: the refusal is awaited",
	},
	{
		"server", "sends a form with a head of megabytes",
		"server TestAFormWithALongHeadIsRefused", "none: the refusal says so",
	},
	{
		"server", "fills the queue of runs",
		"server TestATenantThatFillsTheQueueDelaysItself", "none: the tenant itself is refused",
	},
	{
		"server", "takes all direct answers",
		"server TestATenantThatFillsTheDirectAnswersDelaysItself", "none: the tenant itself is refused",
	},
	{
		"server", "opens pipes and other special files below a root",
		"cmd/rlm TestSpecialFilesBelowARootAreRefused", "none: the refusal says so",
	},
	{
		"server", "has a call wait for a pipe while the server ends",
		"cmd/rlm TestASignalEndsCallsOfHosts", "none: the end is awaited",
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
	{
		"engines of the host", "has templates, functions of Lua or clauses of Prolog that each call another one twice",
		"repl/internal/evaluators TestTreesOfCallsEndAtTheirLimit", "a tree of three levels",
	},
	{
		"engines of the host", "loops, grows, recurses or ends its process in a template, Lua or Prolog",
		"repl/internal/evaluators TestHostileProgramsEndAlone", "none: each error says what it did",
	},
	{
		"engines of the host", "asks SQL by a tree of tables, joins or nested queries",
		"internal/data/tablesql TestTreesOfQueriesEndWithTheirTime", "a tree of five levels",
	},
	{
		"engines of the host", "has one operation of SQL that takes days",
		"internal/data/tablesql TestEachOperationEndsWithItsQuery", "none: the time is over meanwhile",
	},
	{
		"engines of the host", "asks Cypher or SPARQL by a tree of choices",
		"graph TestTreesOfQueriesAreStopped", "a tree of five levels",
	},
	{
		"engines of the host", "has a schema whose rules multiply",
		"schema TestHostileWork", "none: the check is refused before it begins",
	},
	{
		"engines of the host", "searches a text for a needle with the hash of the text",
		"internal/data/bigtext TestHostileNeedlesTakeTimeInProportion", "none: package bytes takes hours",
	},
	{
		"engines of the host", "compiles regular expressions that take hours to compile",
		"internal/data/bigtext TestHostileExpressionsAreCompiledInTime", "none: it takes hours",
	},
	{
		"engines of the host", "holds a processor although its fuel is used up",
		"internal/machine/watchdog TestAGuestThatNeverLeavesEndsTheProcess", "none: the process ends",
	},
	{
		"wall of wasm", "calls functions in C in trees of 34 kinds that pay no fuel for loops",
		"tiers/wasm TestTreesOfCallsPayFuel", "none: the fuel is counted",
	},
	{
		"wall of wasm", "takes the memory maps of the process by threads",
		"tiers/wasm TestAThreadThatCannotStartIsAnException", "none: the exception says so",
	},
	{
		"wall of wasm", "takes the memory maps of the process by sandboxes",
		"tiers/wasm TestASandboxIsRefusedBeforeTheKernelRefuses", "none: the refusal says so",
	},
	{
		"quotas", "uploads many files at once, each below the quota",
		"server TestAQuotaHoldsWhileFilesArrive", "one upload at a time",
	},
	{
		"quotas", "reserves a budget from many goroutines at once",
		"repl/internal/calls TestBudgetsAreKeptUnderRaces", "none: what is spent is counted",
	},
	{
		"quotas", "takes all places with sessions that cannot leave them",
		"server TestATenantLeavesPlacesForOthers", "none: the tenant itself is refused",
	},
	{
		"quotas", "uses a session from many connections at once",
		"server TestSessionsAreUsedByManyAtOnce", "none: all results are checked",
	},
	{
		"model server", "sends pieces of a reply without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends comments without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends empty lines without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends one line without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends a gigabyte of spaces in a megabyte",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends a byte now and then",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends an error without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends headers without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends interim replies without an end",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "announces a length that is not true",
		"repl/llm/providers TestRepliesWithoutAnEnd", "a client without bounds",
	},
	{
		"model server", "sends a page, cuts its reply, or sends another value",
		"repl/llm/providers TestFailuresHaveKinds", "none: each error has its kind",
	},
	{
		"model server", "counts tokens that cannot be",
		"repl/llm/providers TestAUsageThatCannotBeIsReplacedByAnEstimate", "none: the estimate is known",
	},
	{
		"model server", "redirects the key and the prompt to another host",
		"repl/llm/providers TestARedirectSendsNeitherKeyNorPromptElsewhere", "a redirection within the host",
	},
	{
		"MCP server", "sends replies of 17 MiB, of millions of values, and without an end",
		"mcp/tools TestHarmIsBounded", "none: allocated bytes are counted",
	},
	{
		"MCP server", "ends in a call, never answers, asks the client, changes its tools",
		"mcp/tools TestHarmIsBounded", "none: the next call is answered",
	},
	{
		"MCP server", "streams events without an end over HTTP",
		"mcp/tools TestStreamsWithoutAnEnd", "none: the connection ends",
	},
	{
		"MCP server", "describes tools whose schemas and names break Python",
		"mcp/tools TestSchemasAreHostile", "none: the functions are called",
	},
	{
		"page", "calls the server from a page of a stranger, or by another name of this machine",
		"server TestPagesOfStrangersAreRefused", "the server's own page",
	},
	{
		"page", "reads a run in the viewer from a page of a stranger",
		"viewer TestOnlyTheOwnPageGetsThrough", "the viewer's own page",
	},
	{
		"damaged store", "flips, cuts, fills with zeros or deletes any file of a data folder",
		"server TestADamagedDataFolderIsServed", "the folder without damage",
	},
	{
		"damaged store", "flips a bit of a session's state",
		"server TestADamagedSessionHasAWayOut", "the state before",
	},
	{
		"damaged store", "flips a bit of a context",
		"server TestADamagedContextCanBeSentAgain", "the context before",
	},
	{
		"damaged store", "changes an upload while the server runs",
		"server TestADamagedUploadIsRefused", "the upload before",
	},
	{
		"damaged store", "changes the events of a run",
		"server TestDamagedEventsAreSaid", "the events before",
	},
	{
		"damaged store", "damages a page of the database",
		"server TestADamagedDatabaseLosesOnlyItsPage", "the rows of other pages",
	},
	{
		"damaged store", "deletes the database",
		"server TestAFolderWithoutItsDatabaseIsNotEmptied", "none: the folder is searched",
	},
	{
		"damaged store", "starts a second server on the folder",
		"server TestADataFolderHasOneOwner", "the same folder after the first server",
	},
	{
		"damaged store", "rewrites the audit log",
		"server/internal/access TestDamageOfTheAuditLogIsFound", "the log before",
	},
	{
		"damaged store", "damages a store of runs",
		"internal/keep/store/sqlitestore TestDamageOfAStoreIsFoundAndRepaired", "the store before",
	},
	{
		"damaged store", "forges a snapshot of a session",
		". TestADamagedSnapshotIsRefused", "the snapshot before",
	},
	{
		"damaged store", "fills the disk",
		"server TestAFullDiskLosesNothing", "none: what was confirmed is read again",
	},
}

// renderBeyond writes the table of attacks beyond the corpus.
func renderBeyond(b *strings.Builder) {
	b.WriteString("\n## Attacks beyond the corpus\n\n")
	b.WriteString("| class | what it tries | test | control |\n| --- | --- | --- | --- |\n")
	for _, a := range beyondTheCorpus {
		fmt.Fprintf(b, "| %s | %s | `%s` | %s |\n", a.class, a.tries, a.test, a.control)
	}
}
