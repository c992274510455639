// The order of names as people read them: host-2 before host-10.
export const natural = new Intl.Collator('en', { numeric: true }).compare;
