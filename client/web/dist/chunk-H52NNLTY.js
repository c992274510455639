import{c as o}from"./chunk-KY352WJG.js";var t=o(null);export{t as a};
