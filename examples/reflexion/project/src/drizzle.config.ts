// Where drizzle-kit finds the schema, and where it puts migrations.
export default {
  dialect: "postgresql",
  schema: "./src/schema.ts",
  out: "./drizzle",
}
